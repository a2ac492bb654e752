/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work on large chunks that workers share: which runs have workers, that they take
 * parts, and copies.
 */
#include "tests/harness/tribtest.h"

#include <sched.h>

#include "base/time.h"
#include "base/workers.h"
#include "pipeline/payload/chunk_parts.h"

enum { ROOM = TRIB_PARTS_CHUNK + 3 * TRIB_PARTS_BYTES };

struct side {
    struct trib_config cfg;
    struct trib_error err;
    struct trib_engine engine;
    struct trib_run run;
};

/* A run with a chunk of `bytes`. */
static void open_side(struct side *s, int threads, size_t bytes)
{
    memset(s, 0, sizeof(*s));
    s->cfg = (struct trib_config){.encode_threads = threads, .spin_us = 20};
    s->engine = (struct trib_engine){
        .cfg = &s->cfg, .err = &s->err, .kernels = trib_kernels_get(NULL)};
    s->run = (struct trib_run){
        .desc = {.element = 4, .piece = bytes / 4, .total = bytes / 4}};
}

static void close_side(struct side *s)
{
    trib_workers_destroy(s->engine.workers);
}

static bool splits(struct side *s)
{
    assert_status(trib_parts_prepare(&s->engine, &s->run), TRIB_OK);
    const bool yes = s->engine.splits;
    assert_int_equal(yes, s->engine.workers != NULL);
    assert_int_equal(yes, trib_parts_is_used(&s->engine, &s->run));
    close_side(s);
    return yes;
}

/* Let this thread use only the first of its cores; return how many it had. */
static int take_one_core(cpu_set_t *before_out)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    assert_int_equal(sched_getaffinity(0, sizeof(*before_out), before_out), 0);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, before_out))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    return CPU_COUNT(before_out);
}

/* Threads start only for runs that can use them. */
TEST(test_choice)
{
    struct side s;
    cpu_set_t before;

    open_side(&s, 0, ROOM);
    assert_false(splits(&s));
    open_side(&s, 2, TRIB_PARTS_CHUNK - 4);
    assert_false(splits(&s));
    open_side(&s, 2, ROOM);
    s.run.desc.total = 1000;
    assert_false(splits(&s));
    open_side(&s, 2, ROOM);
    s.engine.oversubscribed = true;
    assert_false(splits(&s));
    open_side(&s, 2, ROOM);
    s.run.is_aggregator = true;
    assert_false(splits(&s));
    open_side(&s, 2, ROOM);
    s.engine.quota = 1;
    assert_false(splits(&s));
    const int cores = take_one_core(&before);
    open_side(&s, 2, ROOM);
    assert_false(splits(&s));
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
    open_side(&s, 2, ROOM);
    s.engine.quota = 2;
    assert_int_equal(splits(&s), cores > 1);
    open_side(&s, 2, ROOM);
    assert_int_equal(splits(&s), cores > 1);
}

struct meeting {
    _Atomic int here;
    int all;
};

/* Each part waits until all threads have one. */
static void meet(const void *arg, size_t first, size_t n)
{
    struct meeting *m = *(struct meeting *const *)arg;

    (void)first, (void)n;
    atomic_fetch_add(&m->here, 1);
    while (atomic_load(&m->here) < m->all)
        sched_yield();
}

/* Every worker takes a part: otherwise the program's deadline ends the test. */
TEST(test_shares)
{
    for (int threads = 1; threads <= 3; threads++) {
        struct side s;
        struct meeting m = {.all = threads + 1}, *to = &m;
        open_side(&s, threads, ROOM);
        assert_status(trib_parts_workers(&s.engine), TRIB_OK);
        s.engine.splits = true;
        s.engine.parts_until = UINT64_MAX;
        trib_parts_run(&s.engine, TRIB_PARTS_CHUNK, 1, meet, &to);
        assert_int_equal(m.here, TRIB_PARTS_CHUNK / TRIB_PARTS_BYTES);
        assert_int_equal(s.engine.stats.splits, 1);
        assert_true(s.engine.stats.parts_shared >= (uint64_t)threads);
        close_side(&s);
    }
}

static void do_nothing(const void *arg, size_t first, size_t n)
{
    (void)arg, (void)first, (void)n;
}

/* Sleeping workers are woken for a long chunk, and for one that follows another at
 * once. */
TEST(test_wakes)
{
    struct side s;
    const struct trib_engine_stats *stats = &s.engine.stats;

    open_side(&s, 1, ROOM);
    assert_status(trib_parts_workers(&s.engine), TRIB_OK);
    s.engine.splits = true;
    while (!trib_workers_asleep(s.engine.workers))
        sched_yield();
    trib_parts_run(&s.engine, TRIB_PARTS_WAKE - 1, 1, do_nothing, NULL);
    assert_int_equal(stats->splits, 0);
    assert_true(s.engine.parts_until <= trib_now_ns() + 20000);
    s.engine.parts_until = UINT64_MAX;
    trib_parts_run(&s.engine, TRIB_PARTS_CHUNK, 1, do_nothing, NULL);
    assert_int_equal(stats->splits, 1);
    while (!trib_workers_asleep(s.engine.workers))
        sched_yield();
    s.engine.parts_until = 0;
    trib_parts_run(&s.engine, TRIB_PARTS_WAKE, 1, do_nothing, NULL);
    assert_int_equal(stats->splits, 2);
    close_side(&s);
}

/* Any number of bytes at any alignment; nothing around them is written. */
TEST(test_copies)
{
    static const size_t sizes[] = {0,
                                   1,
                                   TRIB_PARTS_CHUNK - 1,
                                   TRIB_PARTS_CHUNK,
                                   TRIB_PARTS_CHUNK + TRIB_PARTS_BYTES + 77,
                                   ROOM};
    static uint8_t from[ROOM + 8], to[ROOM + 8], want[ROOM + 8];

    for (size_t i = 0; i < sizeof(from); i++)
        from[i] = (uint8_t)(i * 2654435761u >> 13);
    for (int k = 0; k < 4 * 2 * 6; k++) {
        struct side s;
        const size_t bytes = sizes[k % 6], at = (size_t)k % 5;
        open_side(&s, k / 12, ROOM);
        assert_status(trib_parts_prepare(&s.engine, &s.run), TRIB_OK);
        s.engine.parts_until = UINT64_MAX;
        memset(to, 0x5a, sizeof(to));
        memset(want, 0x5a, sizeof(want));
        memcpy(want + at, from + 3, bytes);
        if (k / 6 % 2)
            trib_parts_copy(&s.engine, to + at, from + 3, bytes);
        else
            trib_parts_copy_stream(&s.engine, to + at, from + 3, bytes);
        assert_memory_equal(to, want, sizeof(to));
        assert_int_equal(s.engine.stats.splits,
                         s.engine.splits && bytes >= TRIB_PARTS_CHUNK);
        close_side(&s);
    }
}
