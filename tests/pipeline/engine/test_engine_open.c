/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creation and destruction of an engine: its allocations, how its links open, and the
 * cleanup after memory or a peer is unavailable.
 */
#include "tests/pipeline/engine/engines.h"

static struct engines *strangers(const char *transport)
{
    return engines_meet(&(struct engines_opts){.ranks = 2,
                                               .floats = 10,
                                               .transport = transport,
                                               .config = "window=3;chunk=8K"});
}

TEST(test_opens)
{
    static const char *const transports[] = {"shm", "shm+nomap", "loop"};

    for (int k = 0; k < 3; k++) {
        struct engines *t = strangers(transports[k]);
        struct trib_engine *e = &t->side[0].engine;
        assert_int_equal(e->arena.window, 3);
        assert_int_equal(e->arena.slot_bytes, 8192);
        assert_false(e->links[1].connected);
        assert_true(e->all_mapped);
        for (int twice = 0; twice < 2; twice++)
            assert_status(trib_engine_connect(e, 1, "allreduce"), TRIB_OK);
        assert_true(e->links[1].connected && e->links[1].opened);
        assert_int_equal(e->all_mapped, k == 0);
        assert_int_equal(e->links[1].mapped, k == 0);
        engines_close(t);
    }
}

/* The arena of ranks that use aggregators has room only for links to aggregators. */
TEST(test_aggregators)
{
    struct engines *t = engines_meet(&(struct engines_opts){
        .ranks = 1, .aggregators = 1, .floats = 10, .transport = "shm"});

    for (int i = 0; i < 2; i++) {
        assert_true(t->side[i].engine.arena.to_aggregators);
        assert_int_equal(trib_engine_is_aggregator(&t->side[i].engine), i);
    }
    engines_close(t);
}

static trib_status_t refuse(struct trib_transport *t, size_t bytes, void **base,
                            struct trib_region **out)
{
    (void)t, (void)bytes, (void)base, (void)out;
    return TRIB_ERR_NO_MEMORY;
}

/* Nothing is left of an engine that cannot be made; closing it does nothing. */
TEST(test_no_memory)
{
    const struct trib_transport_ops ops = {.alloc = refuse};
    struct trib_transport transport = {.ops = &ops};
    struct trib_config cfg;
    struct trib_error err = {0};

    assert_status(trib_config_load(&cfg, "trace=1K", NULL, NULL), TRIB_OK);
    struct trib_engine e = {.cfg = &cfg,
                            .err = &err,
                            .kernels = trib_kernels_get(NULL),
                            .transport = &transport,
                            .size = 2,
                            .ranks = 2};
    assert_status(trib_engine_open(&e), TRIB_ERR_NO_MEMORY);
    assert_null(e.links);
    assert_null(e.peers);
    assert_null(e.parted);
    trib_engine_close(&e);
}

static trib_status_t connect_refused(struct trib_transport *t, int peer,
                                     const struct trib_address *address)
{
    (void)peer;
    (void)address;
    return trib_fail(t->err, TRIB_ERR_SYSTEM, "the cable is cut");
}

/* An unreachable peer: the error message names both ranks and the operation. */
TEST(test_unreachable)
{
    struct engines *t = strangers("shm");
    struct trib_engine *e = &t->side[0].engine;
    const struct trib_transport_ops *plain = e->transport->ops;
    struct trib_transport_ops ops = *plain;

    ops.connect = connect_refused;
    e->transport->ops = &ops;
    assert_status(trib_engine_link(e, 1), TRIB_ERR_SYSTEM);
    assert_string_equal(trib_error_text(e->err), "the cable is cut");
    assert_int_equal(e->failed, 0); /* the caller may have another way */
    trib_error_clear(e->err);
    assert_status(trib_engine_connect(e, 1, "broadcast"), TRIB_ERR_SYSTEM);
    assert_status((trib_status_t)e->failed, TRIB_ERR_SYSTEM);
    engines_words(e->failure.text,
                  (const char *const[]){"rank 1 (host here, process",
                                        "cannot be reached from rank 0",
                                        "operation broadcast, phase connect: the cable",
                                        NULL});
    e->transport->ops = plain;
    engines_close(t);
}

static int dialled[4], n_dialled;

static void note_dials(struct trib_transport *t, struct trib_target *dials, int n)
{
    (void)t;
    for (int i = 0; i < n; i++)
        dialled[n_dialled++] = dials[i].peer;
}

/* Peers that are not connected are connected at once; one alone is left to connect. */
TEST(test_connects_many)
{
    struct engines *t = engines_meet(&(struct engines_opts){
        .ranks = 4, .floats = 10, .transport = "loop", .config = "window=3;chunk=8K"});
    struct trib_engine *e = &t->side[0].engine;
    const struct trib_transport_ops *plain = e->transport->ops;
    struct trib_transport_ops ops = *plain;
    const bool all[] = {true, true, true, true}, one[] = {false, true, false, false};

    ops.connect_many = note_dials;
    e->transport->ops = &ops;
    trib_engine_connect_many(e, one, 4);
    assert_int_equal(n_dialled, 0);
    assert_status(trib_engine_connect(e, 2, "broadcast"), TRIB_OK);
    trib_engine_connect_many(e, all, 4);
    assert_int_equal(n_dialled, 2);
    assert_int_equal(dialled[0], 1);
    assert_int_equal(dialled[1], 3);
    e->transport->ops = plain;
    engines_close(t);
}

/* An abort cause received from another rank takes precedence over the lost peer. */
TEST(test_unreachable_with_a_cause)
{
    struct engines *t = strangers("shm");
    struct trib_engine *e = &t->side[0].engine;
    const struct trib_transport_ops *plain = e->transport->ops;
    struct trib_transport_ops ops = *plain;

    trib_engine_fail(&t->side[1].engine, TRIB_ERR_NO_MEMORY, "because of this");
    ops.connect = connect_refused;
    e->transport->ops = &ops;
    assert_status(trib_engine_connect(e, 1, "broadcast"), TRIB_ERR_NO_MEMORY);
    assert_string_equal(e->failure.text, "because of this");
    e->transport->ops = plain;
    engines_close(t);
}

/* After a failure memory can be freed, because nothing writes to it any longer. */
TEST(test_part)
{
    struct engines *t = engines_two("shm+nomap", true);
    struct trib_engine *e = &t->side[0].engine;
    const struct trib_write w = {.len = 0};

    assert_status(e->transport->ops->write(e->transport, 1, &w), TRIB_OK);
    trib_engine_fail(e, TRIB_ERR_TIMEOUT, "a failure");
    trib_engine_part(e);
    assert_true(e->links[1].lost);
    assert_status(e->transport->ops->write(e->transport, 1, &w), TRIB_ERR_PEER_LOST);
    trib_engine_part(e);
    engines_close(t);
}
