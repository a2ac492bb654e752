/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine without progress: it calls its hook, sleeps, sends wait notices to peers,
 * and fails with a message that names the missing frame. The test sets clocks instead
 * of waiting.
 */
#include "tests/pipeline/engine/engines.h"

#include "base/time.h"

enum { MS = 1000000 };

struct hook {
    struct trib_engine *other;
    int calls;
    struct trib_idle *idle;
};

static void drive_other(void *arg)
{
    struct hook *h = arg;

    h->calls++;
    (void)trib_engine_progress(h->other);
}

/* The other rank makes progress only in the hook: without it the wait would hang. */
TEST(test_hook)
{
    struct engines *t = engines_two("shm", true);
    struct trib_engine *e = &t->side[0].engine;
    struct hook h = {.other = &t->side[1].engine};

    e->idle_hook = drive_other;
    e->idle_hook_arg = &h;
    engines_start_in_place(t, 0);
    engines_start_in_place(t, 1);
    assert_status(trib_engine_wait(e, &t->side[0].run), TRIB_OK);
    assert_true(h.calls > 0);
    for (int i = 0; i < ENGINES_COUNT; i++)
        assert_int_equal((int)t->side[0].x[i], 3);
    e->idle_hook = NULL;
    engines_drive(t);
    engines_close(t);
}

static int answer_5(void *arg)
{
    (void)arg;
    return 5;
}

static bool give_way(void *arg)
{
    struct hook *h = arg;

    if (h->other)
        drive_other(h);
    return ++h->calls > 100 && trib_idle_call(h->idle);
}

/* The caller's idle function: called on each pass, and its answer fails the engine. */
TEST(test_idle_function)
{
    struct engines *t = engines_two("shm", true);
    struct trib_engine *e = &t->side[0].engine;
    struct trib_idle idle = {.call = answer_5};
    struct hook h = {.other = &t->side[1].engine, .idle = &idle};

    e->give_way = give_way;
    e->give_way_arg = &h;
    e->idle_fn = &idle;
    engines_start_in_place(t, 0);
    engines_start_in_place(t, 1);
    assert_status(trib_engine_wait_idle(e, &t->side[0].run), TRIB_OK);
    assert_true(h.calls > 0);
    engines_drive(t);

    h = (struct hook){.idle = &idle};
    engines_start_in_place(t, 0);
    assert_status(trib_engine_wait_idle(e, &t->side[0].run), TRIB_ERR_ABORTED);
    assert_status((trib_status_t)e->failed, TRIB_ERR_ABORTED);
    engines_words(e->failure.text,
                  (const char *const[]){"rank 0 (host here", "has given up in",
                                        "allreduce (direct), operation 2",
                                        "(trib_opts_t.idle) has returned 5", NULL});
    trib_engine_notices(&t->side[1].engine);
    assert_string_equal(t->side[1].engine.failure.text, e->failure.text);
    engines_close(t);
}

static struct hook sleeper;

static void wait_driving(struct trib_transport *t, int timeout_us)
{
    (void)t;
    assert_in_range(timeout_us, 1, 1000);
    drive_other(&sleeper);
}

/* The engine finally sleeps: here the other rank makes progress only during the
 * sleep. */
TEST(test_sleeps)
{
    struct engines *t = engines_two("shm", true);
    struct trib_engine *e = &t->side[0].engine;
    const struct trib_transport_ops *plain = e->transport->ops;
    struct trib_transport_ops ops = *plain;

    sleeper = (struct hook){.other = &t->side[1].engine};
    ops.wait = wait_driving;
    e->transport->ops = &ops;
    engines_start_in_place(t, 0);
    engines_start_in_place(t, 1);
    assert_status(trib_engine_wait(e, &t->side[0].run), TRIB_OK);
    assert_true(sleeper.calls > 0);
    e->transport->ops = plain;
    engines_drive(t);
    engines_close(t);
}

/* Set the engine's clock as if its last progress was `ns` ago. */
static void set_idle(struct trib_engine *e, uint64_t ns)
{
    e->last_progress = trib_now_ns() - ns;
    e->last_notice = trib_now_ns();
    e->last_poll = 0;
}

TEST(test_looks)
{
    struct engines *t = engines_two("shm", true);
    struct trib_engine *e = &t->side[0].engine;

    engines_start_in_place(t, 0);
    trib_engine_awake(e);
    assert_int_equal(e->last_progress, 0);
    assert_false(trib_engine_check(e)); /* the clock starts */
    assert_true(e->last_progress > 0);
    set_idle(e, (uint64_t)500 * MS);
    assert_true(trib_engine_check(e)); /* time to sleep */
    assert_int_equal(e->failed, 0);
    trib_engine_awake(e);
    assert_int_equal(e->idle + e->yields, 0);
    assert_false(trib_engine_check(e));
    engines_close(t);
}

/* A waiting peer sends a notice every 100 ms; the engine records its waiting time. */
TEST(test_notices)
{
    struct engines *t = engines_two("shm", true);
    struct trib_engine *e = &t->side[0].engine, *late = &t->side[1].engine;

    engines_start_in_place(t, 0);
    set_idle(e, (uint64_t)50 * MS);
    (void)trib_engine_check(e);
    trib_engine_notices(late);
    assert_int_equal(trib_engine_awaited_ns(late), 0); /* not yet */

    e->last_notice = trib_now_ns() - (uint64_t)150 * MS;
    (void)trib_engine_check(e);
    set_idle(late, MS);
    (void)trib_engine_check(late);
    assert_int_equal(late->awaited, 1);
    assert_true(trib_engine_awaited_ns(late) > 0);
    late->awaited_since -= (uint64_t)3000 * MS;
    assert_true(trib_engine_awaited_ns(late) >= (uint64_t)3000 * MS);
    assert_int_equal(trib_engine_awaited_ns(e), 0);
    engines_start_in_place(t, 1);
    assert_int_equal(trib_engine_awaited_ns(late), 0);
    engines_close(t);
}

static void times_out(struct engines *t, const char *what)
{
    struct trib_engine *e = &t->side[0].engine;
    char waits[100];

    for (int i = 0; i < 5; i++)
        (void)trib_engine_progress(e);
    set_idle(e, ((uint64_t)e->cfg->timeout_ms + 1000) * MS);
    (void)trib_engine_check(e);
    snprintf(waits, sizeof(waits), "it waits for %s of ", what);
    assert_status((trib_status_t)e->failed, TRIB_ERR_TIMEOUT);
    engines_words(e->failure.text,
                  (const char *const[]){"rank 0 made no progress for", waits,
                                        "allreduce (direct), operation 1",
                                        "(raise TRIB_TIMEOUT_MS", NULL});
    assert_int_equal(t->side[0].run.now.state, TRIB_RUN_DONE);
    assert_status(t->side[0].run.now.status, TRIB_ERR_TIMEOUT);
}

TEST(test_times_out)
{
    static const char *const missing[] = {"a contribution", "its call"};

    for (int zero_copy = 0; zero_copy < 2; zero_copy++) {
        struct engines *t = engines_two("shm", zero_copy);
        engines_start_in_place(t, 0);
        times_out(t, missing[zero_copy]);
        assert_non_null(strstr(t->side[0].engine.failure.text, "rank 1 (host here"));
        engines_close(t);
    }
}

/* In the final barrier a peer leaves, but its message was lost with its connection. */
TEST(test_left_without_its_message)
{
    const struct trib_run_desc desc = {
        .op = {.coll = TRIB_BARRIER, .root = TRIB_ROOT_NONE, .leaving = true}};

    for (int other = 1; other < 3; other++) {
        struct engines *t = engines_open(3, ENGINES_COUNT, "tcp", NULL);
        struct trib_engine *e = &t->side[0].engine;
        engines_prepare(t, trib_algo_find("dissemination"), 0, &desc);
        engines_start_in_place(t, 0);
        for (int i = 0; i < 100; i++)
            (void)trib_engine_progress(e);
        trib_engine_lost(e, other, true, "it has left");
        set_idle(e, (uint64_t)50 * MS);
        (void)trib_engine_check(e);
        assert_status((trib_status_t)e->failed, TRIB_OK);
        /* Rank 2 is the first that rank 0 hears of. */
        assert_int_equal(t->side[0].run.now.state,
                         other == 2 ? TRIB_RUN_DONE : TRIB_RUN_ACTIVE);
        engines_close(t);
    }
}

/* A stall limit of 0 disables the limit: an hour without progress is no failure. */
TEST(test_no_limit)
{
    struct engines *t = engines_two("shm", true);
    struct trib_engine *e = &t->side[0].engine;
    struct trib_config cfg = *e->cfg;

    cfg.timeout_ms = 0;
    e->cfg = &cfg;
    engines_start_in_place(t, 0);
    set_idle(e, (uint64_t)3600000 * MS);
    (void)trib_engine_check(e);
    assert_int_equal(e->failed, 0);
    engines_start_in_place(t, 1);
    engines_drive(t);
    engines_close(t);
}

/* Rank 0 waits for its own caller, which has named no element as ready. */
TEST(test_times_out_unfed)
{
    struct engines *t = engines_open(1, ENGINES_COUNT, "shm", NULL);
    const struct trib_run_desc desc = {
        .op = {.root = TRIB_ROOT_NONE, .feed = TRIB_FEED_FORWARD}};

    engines_prepare(t, trib_algo_find("direct"), ENGINES_COUNT, &desc);
    engines_start_in_place(t, 0);
    times_out(t, "the rest of the input (trib_plan_ready)");
    assert_non_null(strstr(t->side[0].engine.failure.text, "of this rank"));
    engines_close(t);
}
