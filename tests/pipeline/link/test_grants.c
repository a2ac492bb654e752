/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Grants: bytes in flight to one rank, however many ranks send to it.
 */
#include "pipeline/link/grants.h"
#include "pipeline/link/link_words.h"
#include "tests/pipeline/engine/engines.h"

enum { SIDES = 9, PIECE = 4096, COUNT = SIDES * PIECE };

#define PIECE_BYTES (PIECE * sizeof(float))

static struct engines *open_sides(const char *config, uint32_t senders)
{
    const struct trib_run_desc desc = {.op.root = TRIB_ROOT_NONE,
                                       .senders = {senders, senders}};
    struct engines *t = engines_open(SIDES, COUNT, "shm+nomap", config);

    engines_prepare(t, trib_algo_find("direct"), COUNT, &desc);
    for (int i = 0; i < SIDES; i++)
        for (size_t k = 0; k < COUNT; k++)
            t->side[i].x[k] = (float)(i + 1);
    return t;
}

/* Return the payload that ranks have posted to rank 0 and that it has not received. */
static size_t under_way(const struct engines *t)
{
    size_t frames = 0;

    for (int i = 1; i < SIDES; i++)
        for (int lane = 0; lane < TRIB_LANES; lane++)
            frames += t->side[i].engine.links[0].send[lane].next -
                      t->side[0].engine.links[i].recv[lane].arrived;
    return frames * PIECE_BYTES;
}

static bool all_done(const struct engines *t)
{
    for (int i = 0; i < SIDES; i++)
        if (t->side[i].run.now.state != TRIB_RUN_DONE)
            return false;
    return true;
}

/* Run an all-reduce; rank 0 makes one pass for ten of the others. Return the
 * most bytes under way to it. */
static size_t sum_with_slow_root(struct engines *t)
{
    size_t most = 0;

    engines_start(t);
    for (int pass = 0; pass < 10000 && !all_done(t); pass++) {
        for (int i = 1; i < SIDES; i++) {
            (void)trib_engine_progress(&t->side[i].engine);
            most = under_way(t) > most ? under_way(t) : most;
        }
        if (pass % 10 == 9)
            (void)trib_engine_progress(&t->side[0].engine);
    }
    engines_done(t);
    for (int i = 0; i < SIDES; i++)
        for (size_t k = 0; k < COUNT; k++)
            assert_int_equal((int)t->side[i].y[k], SIDES * (SIDES + 1) / 2);
    return most;
}

TEST(test_bytes_in_flight_are_bounded)
{
    static const struct {
        const char *config;
        uint32_t senders;
        size_t most, least;
    } cases[] = {
        /* No limit, or one sender: all ranks send at once. */
        {"in_flight=0,chunk=16K,window=2", SIDES - 1, SIZE_MAX, 8 * PIECE_BYTES},
        {"in_flight=32K,chunk=16K,window=2", 1, SIZE_MAX, 8 * PIECE_BYTES},
        /* All windows fit in four budgets. */
        {"in_flight=64K,chunk=16K,window=2", SIDES - 1, SIZE_MAX, 8 * PIECE_BYTES},
        {"in_flight=32K,chunk=16K,window=2", SIDES - 1, 32768, 32768},
        {"in_flight=48K,chunk=16K,window=2", SIDES - 1, 49152, 32768},
        /* A frame longer than the budget is alone. */
        {"in_flight=1,chunk=16K,window=2", SIDES - 1, PIECE_BYTES, PIECE_BYTES},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct engines *t = open_sides(cases[i].config, cases[i].senders);
        const size_t most = sum_with_slow_root(t);
        if (most > cases[i].most || most < cases[i].least)
            fail_msg("%s: %zu bytes under way", cases[i].config, most);
        for (int k = 0; k < SIDES; k++) {
            assert_int_equal(t->side[k].engine.arena.grants.given, 0);
            assert_int_equal(t->side[k].engine.arena.grants.waiting, 0);
        }
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

static struct trib_event event_of(int peer, uint32_t kind, uint32_t bits)
{
    return (struct trib_event){
        .kind = TRIB_EVENT_ARRIVED, .peer = peer, .imm = trib_link_imm(kind, bits)};
}

static bool take(struct trib_engine *e, int peer, uint32_t kind, uint32_t bits)
{
    const struct trib_event event = event_of(peer, kind, bits);

    return trib_grants_take(&e->arena, e->links, &event);
}

static uint32_t ask_of(size_t bytes, uint32_t lane)
{
    return (uint32_t)(bytes / LINK_ASK_UNIT) << 1 | lane;
}

/* One frame fits. Peers are served in the order of their requests, and the share of a
 * lost peer goes to the next one. */
TEST(test_shares_return)
{
    struct engines *t = open_sides("in_flight=16K,chunk=16K,window=2", SIDES - 1);
    struct trib_engine *e = &t->side[0].engine;
    const struct trib_grants *g = &e->arena.grants;

    for (int peer = 1; peer < 5; peer++)
        assert_true(take(e, peer, LINK_IMM_ASK, ask_of(16384, peer % 2)));
    assert_true(e->links[1].recv[1].granted && e->links[1].recv[1].asked == 16384);
    assert_int_equal(g->given, 16384);
    assert_int_equal(g->waiting, 3);
    assert_true(take(e, 1, LINK_IMM_FRAME, 0)); /* of the other lane */
    assert_int_equal(g->waiting, 3);
    assert_true(take(e, 1, LINK_IMM_FRAME, 1));
    assert_true(e->links[2].recv[0].granted && e->links[2].recv[0].asked == 16384);
    e->links[2].lost = true;
    trib_grants_drop(&e->arena, &e->links[2], 2);
    e->links[3].lost = true;
    trib_grants_drop(&e->arena, &e->links[3], 3);
    assert_int_equal(g->given, 0);
    assert_int_equal(g->waiting, 1);
    trib_grants_pass(&e->arena, e->links);
    assert_true(e->links[4].recv[0].granted && e->links[4].recv[0].asked == 16384);
    trib_grants_drop(&e->arena, &e->links[4], 4);
    assert_int_equal(g->given + g->waiting, 0);
    engines_close(t);
}

/* Only the ranks that send have a limit: the receiver grants all requests at once. */
TEST(test_receiver_without_limit)
{
    struct engines *t = open_sides("in_flight=0,chunk=16K,window=2", SIDES - 1);
    struct trib_engine *e = &t->side[0].engine;

    for (int peer = 1; peer < SIDES; peer++) {
        assert_true(take(e, peer, LINK_IMM_ASK, ask_of(16384, 0)));
        assert_true(e->links[peer].recv[0].granted);
    }
    for (int peer = 1; peer < SIDES; peer++)
        trib_grants_drop(&e->arena, &e->links[peer], peer);
    engines_close(t);
}

TEST(test_full_transport)
{
    struct engines *t = open_sides("in_flight=16K,chunk=16K,window=2", SIDES - 1);
    struct trib_engine *e = &t->side[1].engine;
    const struct trib_transport_ops *plain = e->transport->ops;
    struct trib_transport_ops busy = *plain;

    busy.write = write_full;
    e->transport->ops = &busy;
    for (int peer = 0; peer < 6; peer += 2)
        assert_true(take(e, peer, LINK_IMM_ASK, ask_of(4096, 0)));
    /* A link that was never connected does not know its peer. */
    e->links[8].connected = false;
    e->links[8].peer = 0;
    trib_grants_drop(&e->arena, &e->links[8], 8);
    e->links[8].connected = true;
    e->links[8].peer = 8;
    assert_int_equal(e->arena.grants.given, 0);
    assert_int_equal(e->arena.grants.waiting, 3);
    e->transport->ops = plain;
    trib_grants_pass(&e->arena, e->links);
    assert_int_equal(e->arena.grants.given, 3 * 4096);
    assert_int_equal(e->arena.grants.waiting, 0);
    engines_close(t);
}

TEST(test_refuses_invalid_events)
{
    struct engines *t = open_sides("in_flight=16K,chunk=16K,window=2", SIDES - 1);
    struct trib_engine *e = &t->side[0].engine;

    assert_false(take(e, 1, LINK_IMM_ASK, ask_of(0, 0)));
    assert_false(take(e, 1, LINK_IMM_ASK, ask_of(16384 + LINK_ASK_UNIT, 0)));
    assert_false(take(e, 1, LINK_IMM_ASK, LINK_IMM_BITS));
    assert_false(take(e, 1, LINK_IMM_GRANT, 0)); /* never asked */
    assert_true(take(e, 1, LINK_IMM_ASK, ask_of(16384, 0)));
    assert_false(take(e, 1, LINK_IMM_ASK, ask_of(64, 0))); /* granted already */
    assert_true(take(e, 2, LINK_IMM_ASK, ask_of(64, 1)));
    assert_false(take(e, 2, LINK_IMM_ASK, ask_of(64, 1))); /* waits already */
    assert_int_equal(e->arena.grants.waiting, 1);
    engines_close(t);
}
