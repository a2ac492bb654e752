/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine when something is wrong, and its trace: two engines in one process that
 * run a sum of two ranks, each driven by hand.
 */
#include "tests/pipeline/engine/engines.h"

/* Nothing is connected yet, and a link has no slots before it is opened. */
static struct engines *meet(const char *transport)
{
    return engines_meet(&(struct engines_opts){
        .ranks = 2, .floats = ENGINES_COUNT, .transport = transport, .per_link = true});
}

static void start(struct engines *t)
{
    for (int i = 0; i < 2; i++)
        engines_start_in_place(t, i);
}

static void assert_summed(struct engines *t)
{
    engines_done(t);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < ENGINES_COUNT; k++)
            assert_int_equal((int)t->side[i].x[k], 3);
        assert_int_equal(t->side[i].engine.arena.awaited, 0);
    }
}

TEST(test_sums)
{
    static const char *const transports[] = {"shm", "shm+nomap"};

    for (int k = 0; k < 2; k++) {
        struct engines *t = engines_two(transports[k], true);
        start(t);
        engines_drive(t);
        assert_summed(t);
        engines_close(t);
    }
}

/* With per-link slots, the first sender waits until the peer has allocated them. */
TEST(test_slots_come_later)
{
    static const char *const transports[] = {"shm", "shm+nomap", "loop"};

    for (int k = 0; k < 3; k++) {
        struct engines *t = meet(transports[k]);
        struct engine_side *first = &t->side[0];
        engines_prepare_sum(t, 0, true);
        engines_start_in_place(t, 0);
        for (int i = 0; i < 100; i++)
            (void)trib_engine_progress(&first->engine);
        assert_int_equal(first->engine.stats.messages, 0);
        assert_int_equal(first->engine.arena.awaited, 1);
        engines_prepare_sum(t, 1, true);
        engines_start_in_place(t, 1);
        engines_drive(t);
        assert_summed(t);
        engines_close(t);
    }
}

static trib_status_t write_full(struct trib_transport *t, int peer,
                                const struct trib_write *w)
{
    (void)t;
    (void)peer;
    (void)w;
    return TRIB_ERR_NO_RESOURCE;
}

TEST(test_slots_of_a_full_transport)
{
    struct engines *t = meet("shm+nomap");
    struct trib_engine *e = &t->side[0].engine;
    const struct trib_transport_ops *plain = e->transport->ops;
    struct trib_transport_ops busy = *plain;

    busy.write = write_full;
    e->transport->ops = &busy;
    engines_prepare_sum(t, 0, true);
    e->transport->ops = plain;
    engines_prepare_sum(t, 1, true);
    assert_true(e->links[1].advert_unsent);
    start(t);
    engines_drive(t);
    assert_false(e->links[1].advert_unsent);
    assert_summed(t);
    engines_close(t);
}

TEST(test_refuses_hostile_adverts)
{
    static const char *const words[] = {"rank 0 (host here", "rank 1 (host here",
                                        "allreduce", NULL};
    static const char *const transports[] = {"shm", "shm+nomap"};

    for (int k = 0; k < 2; k++) {
        struct engines *t = meet(transports[k]);
        struct trib_engine *e = &t->side[0].engine;
        engines_prepare_sum(t, 0, true);
        engines_prepare_sum(t, 1, true);
        (void)trib_engine_events(e);
        struct trib_slot_advert *g =
            (struct trib_slot_advert *)(e->arena.base + sizeof(struct trib_credits) +
                                        sizeof(struct trib_oob_notice));
        memset(g->blob.bytes, 0x5a, sizeof(g->blob.bytes));
        engines_start_in_place(t, 0);
        (void)trib_engine_progress(e);
        assert_true(e->failed < 0);
        engines_words(e->failure.text, words);
        engines_close(t);
    }
}

/* Trace ---------------------------------------------------------------------------- */

static int count_events(const struct trib_trace *trace, enum trib_trace_kind kind)
{
    int n = 0;

    for (uint64_t i = 0; i < trace->count; i++)
        n += trace->events[i].kind == kind;
    return n;
}

TEST(test_trace_shows_waiting)
{
    struct engines *t = engines_two("shm+nomap", true);
    struct trib_engine *e = &t->side[1].engine;

    engines_start_in_place(t, 1);
    for (int i = 0; i < 10; i++) /* the peer never starts */
        (void)trib_engine_progress(e);
    assert_int_equal(count_events(&e->trace, TRIB_TRACE_WAIT_BEGIN), 1);
    assert_int_equal(count_events(&e->trace, TRIB_TRACE_WAIT_END), 0);
    engines_start_in_place(t, 0);
    engines_drive(t);
    assert_int_equal(t->side[1].run.now.state, TRIB_RUN_DONE);
    assert_true(count_events(&e->trace, TRIB_TRACE_ARRIVED) > 0);
    assert_true(count_events(&e->trace, TRIB_TRACE_SEND_END) > 0);
    assert_true(count_events(&e->trace, TRIB_TRACE_UNDER_WAY) > 0);
    assert_int_equal(count_events(&e->trace, TRIB_TRACE_WAIT_BEGIN),
                     count_events(&e->trace, TRIB_TRACE_WAIT_END));
    assert_int_equal(e->trace.events[e->trace.count - 1].kind, TRIB_TRACE_OP_END);
    assert_int_equal(count_events(&e->trace, TRIB_TRACE_PEER_LOST), 0);
    trib_engine_lost(e, 0, false, "it is a test");
    assert_int_equal(count_events(&e->trace, TRIB_TRACE_PEER_LOST), 1);
    engines_close(t);
}
