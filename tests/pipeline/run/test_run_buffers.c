/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The buffers of an operation: those that a rank advertises to its peers, and its
 * validation of their adverts.
 */
#include "tests/pipeline/engine/engines.h"

#include <sys/resource.h>

/* Vector bytes that an advert opens. */
static void opened(const struct trib_ref *ref, bool is, size_t lo, size_t hi)
{
    assert_int_equal(ref->blob.len > 0, is);
    if (is) {
        assert_int_equal(ref->lo, lo);
        assert_int_equal(ref->hi, hi);
    }
}

/* Registered memory, where no result may overwrite it that has to stay. */
TEST(test_opens)
{
    enum { N = ENGINES_COUNT * sizeof(float) };
    static float unregistered[ENGINES_COUNT];
    struct engines *t = engines_two("shm", true);
    struct engine_side *s = &t->side[1];
    struct trib_run *run = &s->run;
    const struct trib_advert *a = &run->now.advert;

    trib_run_bind(&s->engine, run, s->x, s->y);
    trib_run_open(&s->engine, run);
    opened(&a->send, true, 0, N);
    opened(&a->recv, true, 0, N);
    assert_int_equal(run->now.input_place.region != NULL, 1);

    trib_run_bind(&s->engine, run, unregistered, s->y);
    trib_run_open(&s->engine, run);
    opened(&a->send, false, 0, 0);
    opened(&a->recv, true, 0, N);
    assert_null(run->now.input_place.region);

    run->desc.may_undo = true;
    trib_run_bind(&s->engine, run, NULL, s->y);
    trib_run_open(&s->engine, run);
    opened(&a->send, true, 0, N);
    opened(&a->recv, false, 0, 0);
    assert_null(run->now.recv_place.region);
    trib_run_bind(&s->engine, run, s->x, s->y);
    trib_run_open(&s->engine, run);
    opened(&a->recv, true, 0, N);
    run->desc.may_undo = false;

    run->no_result = true;
    trib_run_open(&s->engine, run);
    opened(&a->recv, false, 0, 0);
    run->no_result = false;
    engines_close(t);
}

/* In a blocked collective a rank has its own block alone on one side. */
TEST(test_blocks)
{
    enum { N = 40, BYTES = N * sizeof(float) };
    struct engines *t = engines_two("shm", true);
    struct engine_side *s = &t->side[1];
    struct trib_run *run = &s->run;

    run->desc.count = N;
    run->desc.total = 2 * N;
    run->desc.op.coll = TRIB_ALLGATHER;
    run->desc.cut = TRIB_CUT_BLOCKED;
    trib_run_bind(&s->engine, run, s->x, s->y);
    trib_run_open(&s->engine, run);
    opened(&run->now.advert.send, true, BYTES, 2 * BYTES);
    opened(&run->now.advert.recv, true, 0, 2 * BYTES);
    run->desc.op.coll = TRIB_REDUCE_SCATTER;
    trib_run_bind(&s->engine, run, s->x, s->y);
    trib_run_open(&s->engine, run);
    opened(&run->now.advert.send, true, 0, 2 * BYTES);
    opened(&run->now.advert.recv, true, BYTES, 2 * BYTES);
    engines_close(t);
}

/* A peer of an all-to-all gets the location of its own block, and must send one of the
 * length that this rank sends. */
TEST(test_block_of_a_peer)
{
    struct engines *t = engines_two("shm+nomap", true);
    struct trib_engine *e = &t->side[1].engine;
    struct trib_run *run = &t->side[1].run;
    struct trib_block at[2] = {{.n_in = 7, .n_out = 7, .in = 12, .out = 9},
                               {.n_in = 5, .n_out = 6, .in = 2, .out = 3}};
    struct trib_blocks blocks = {.at = at};
    struct trib_ref ref = {.origin = 100, .hi = 1000, .blob = {.len = 8}};
    const struct trib_ref none = {.origin = 100, .hi = 1000};
    struct trib_view view = {.remote = (struct trib_remote *)&blocks, .origin = 40};

    run->desc.op.coll = TRIB_ALLTOALL;
    run->desc.blocks = &blocks;
    trib_run_cut_ref(e, run, 0, &ref);
    assert_true(ref.origin == 100 + 3 * 4 && ref.lo == 0 && ref.hi == 6 * 4);
    ref = none;
    trib_run_cut_ref(e, run, 0, &ref);
    assert_true(ref.origin == 100 && ref.hi == 1000);
    for (uint64_t hi = 0; hi < 50; hi++) {
        view.lo = hi % 3 == 1;
        view.hi = hi;
        if (hi != 5 * 4 || view.lo)
            assert_false(trib_run_lift_view(e, run, 0, &view));
    }
    view.lo = 0;
    view.hi = 5 * 4;
    assert_true(trib_run_lift_view(e, run, 0, &view));
    assert_true(view.origin == 40 - 2 * 4 && view.lo == 2 * 4 && view.hi == 7 * 4);
    view = (struct trib_view){.hi = 9};
    assert_true(trib_run_lift_view(e, run, 0, &view) && view.hi == 9);
    run->desc.blocks = NULL;
    engines_close(t);
}

/* Peers still write into memory that its own transport cannot read: a failed operation
 * waits for them. */
TEST(test_waits_for_writes)
{
    struct engines *t = engines_two("shm+nomap", true);
    struct engine_side *s = &t->side[1];
    struct trib_engine *e = &s->engine;

    for (int i = 0; i < 2; i++)
        t->side[i].run.desc.place = true;
    trib_memory_copy(&e->memories, trib_memory_place(&e->memories, s->y, 0, 4).region);
    engines_start(t);
    (void)trib_engine_progress(e);
    assert_true(e->links[0].connected && !e->failed);
    opened(&s->run.now.advert_far.recv, true, 0, ENGINES_COUNT * sizeof(float));
    assert_null(s->run.now.recv_place.region);
    trib_engine_mark(e, TRIB_ERR_TIMEOUT, "a test");
    assert_false(trib_engine_await_quiet(e, &s->run));
    trib_engine_fail(&t->side[0].engine, TRIB_ERR_TIMEOUT, "a test");
    assert_true(trib_engine_await_quiet(e, &s->run));
    engines_close(t);
}

/* Rank 0 sends false values about its buffers; rank 1 must reject them. */
static void lie_low(struct trib_advert *o)
{
    o->recv.origin -= 4096;
}

static void lie_high(struct trib_advert *o)
{
    o->send.hi += 4096;
}

static void lie_backwards(struct trib_advert *o)
{
    o->send.lo = o->send.hi + 1;
}

static void lie_hugely(struct trib_advert *o)
{
    o->recv.origin = INT64_MAX;
}

static void lie_about_region(struct trib_advert *o)
{
    memset(o->send.blob.bytes, 0x5a, o->send.blob.len);
}

TEST(test_refuses_lies)
{
    static void (*const lies[])(struct trib_advert *) = {
        lie_low, lie_high, lie_backwards, lie_hugely, lie_about_region};
    static const char *const words[] = {"rank 0 (host here", "sent", "buffer", "rank 1",
                                        "phase", NULL};

    for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
        struct engines *t = engines_two("shm", true);
        engines_start_in_place(t, 0);
        engines_start_in_place(t, 1);
        lies[i](&t->side[0].run.now.advert);
        engines_drive(t);
        assert_status((trib_status_t)t->side[1].engine.failed, TRIB_ERR_PROTOCOL);
        engines_words(t->side[1].engine.failure.text, words);
        engines_close(t);
    }
}

/* This rank's own trouble, in its name, with the cure. */
TEST(test_cannot_import)
{
    static const char *const words[] = {
        "rank 1 (host here", "cannot reach a buffer of rank 0",
        "allreduce",         "phase",
        "ulimit -n",         NULL};
    struct engines *t = engines_two("shm", true);
    struct trib_engine *e = &t->side[1].engine;
    struct rlimit before, none;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    /* Not in the segment that the link's own memory is in, which is open already. */
    void *x;
    size_t bytes = (size_t)8 << 20;
    assert_status(trib_memory_alloc(&t->side[0].engine.memories, bytes, &x), TRIB_OK);
    t->side[0].x = x;
    engines_start_in_place(t, 0);
    engines_start_in_place(t, 1);
    (void)trib_engine_progress(&t->side[0].engine);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    (void)trib_engine_progress(e);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_status((trib_status_t)e->failed, TRIB_ERR_SYSTEM);
    engines_words(e->failure.text, words);
    engines_close(t);
}
