/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Failures: the first one marks the engine and is sent to the peers, ends all runs, and
 * its message names rank, host, operation and phase.
 */
#include "tests/pipeline/engine/engines.h"

#include <stdatomic.h>

static const char *const both[] = {"rank 0 (host here", "rank 1", "allreduce", "direct",
                                   NULL};

/* The first failure stays, and ends all that is queued, once. */
TEST(test_marks_once)
{
    struct engines *t = engines_two("shm", true);
    struct trib_engine *e = &t->side[1].engine, *other = &t->side[0].engine;
    struct trib_run *run = &t->side[1].run;

    engines_start_in_place(t, 1);
    trib_engine_mark(e, TRIB_ERR_NO_MEMORY, "the first");
    trib_engine_mark(e, TRIB_ERR_TIMEOUT, "the second");
    assert_status((trib_status_t)e->failed, TRIB_ERR_NO_MEMORY);
    assert_string_equal(e->failure.text, "the first");
    assert_int_equal(run->now.state, TRIB_RUN_ACTIVE); /* a task may be in it */
    assert_true(trib_engine_progress(e));
    assert_int_equal(run->now.state, TRIB_RUN_DONE);
    assert_status(run->now.status, TRIB_ERR_NO_MEMORY);
    assert_false(trib_engine_progress(e));
    trib_engine_notices(other); /* the other rank has received the cause */
    assert_status((trib_status_t)other->failed, TRIB_ERR_NO_MEMORY);
    assert_string_equal(other->failure.text, "the first");
    engines_start_in_place(t, 1); /* later runs end at once */
    assert_status(run->now.status, TRIB_ERR_NO_MEMORY);
    assert_int_equal(run->now.state, TRIB_RUN_DONE);
    engines_close(t);
}

/* Writes to the place where rank 1 finds the notices of rank 0. */
static void write_notice(struct trib_engine *e, uint32_t kind, int32_t status,
                         const char *text)
{
    struct trib_oob_notice *raw =
        (struct trib_oob_notice *)(e->arena.base + sizeof(struct trib_credits));

    raw->kind = kind;
    raw->status = status;
    snprintf(raw->text, sizeof(raw->text), "%s", text);
    atomic_store(&raw->version_end, 2);
    atomic_store(&raw->version, 2);
}

/* An abort notice with the status of success would complete an operation whose result
 * is undefined. */
TEST(test_refuses_hostile_notices)
{
    static const struct {
        uint32_t kind;
        int32_t status;
    } wrong[] = {
        {TRIB_OOB_NOTICE_FAILED, TRIB_OK},
        {TRIB_OOB_NOTICE_FAILED, TRIB_INPROGRESS},
        {TRIB_OOB_NOTICE_FAILED, 7},
        {TRIB_OOB_NOTICE_FAILED, -7},
        {TRIB_OOB_NOTICE_FAILED, -9999},
        {TRIB_OOB_NOTICE_FAILED, INT32_MIN},
        {TRIB_OOB_NOTICE_FAILED, INT32_MAX},
        {0, TRIB_ERR_TIMEOUT},
        {TRIB_OOB_NOTICE_SURVIVOR, TRIB_OK},
        {TRIB_OOB_NOTICE_SURVIVOR, 7},
        {TRIB_OOB_NOTICE_SURVIVOR + 1, TRIB_ERR_TIMEOUT},
        {UINT32_MAX, TRIB_OK},
    };
    static const char *const words[] = {"rank 0 (host here", "sent a notice",
                                        "to rank 1", NULL};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct engines *t = engines_two("shm", true);
        struct engine_side *s = &t->side[1];
        engines_start_in_place(t, 1);
        write_notice(&s->engine, wrong[i].kind, wrong[i].status, "because");
        trib_engine_notices(&s->engine);
        assert_status((trib_status_t)s->engine.failed, TRIB_ERR_PROTOCOL);
        engines_words(s->engine.failure.text, words);
        engines_close(t);
    }
}

/* A failure without a message gets a default one. */
TEST(test_notices)
{
    static const char *const texts[] = {"because", ""};

    for (int k = 0; k < 2; k++) {
        struct engines *t = engines_two("shm", true);
        struct trib_engine *e = &t->side[1].engine;
        write_notice(e, TRIB_OOB_NOTICE_FAILED, TRIB_ERR_NO_MEMORY, texts[k]);
        trib_engine_notices(e);
        assert_status((trib_status_t)e->failed, TRIB_ERR_NO_MEMORY);
        assert_string_equal(e->failure.text,
                            k ? "a peer has failed for an unknown reason" : "because");
        engines_close(t);
    }
}

/* A peer that shrinks ends the communicator, and may report the lost rank. */
TEST(test_survivor)
{
    static const char *const words[] = {"rank 0 (host here", "trib_comm_shrink",
                                        "seen by rank 1", NULL};

    for (uint32_t lost = 0; lost <= 3; lost++) {
        struct engines *t = engines_two("shm", true);
        struct trib_engine *e = &t->side[1].engine;
        struct trib_oob_notice *raw =
            (struct trib_oob_notice *)(e->arena.base + sizeof(struct trib_credits));
        raw->lost = lost;
        write_notice(e, TRIB_OOB_NOTICE_SURVIVOR, TRIB_ERR_PEER_LOST, "");
        trib_engine_notices(e);
        assert_status((trib_status_t)e->failed, TRIB_ERR_PEER_LOST);
        engines_words(e->failure.text, words);
        for (int p = 0; p < e->size; p++)
            assert_int_equal(e->links[p].reported_lost, lost == (uint32_t)p + 1);
        engines_close(t);
    }
}

TEST(test_lost)
{
    struct engines *t = engines_two("shm", true);
    struct trib_engine *e = &t->side[1].engine;
    char want[200];

    engines_start_in_place(t, 1);
    trib_engine_lost(e, 0, false, "process 7 is stopped");
    snprintf(want, sizeof(want),
             "rank 0 (host here, process %d) is lost: process 7 is stopped; seen by "
             "rank 1 in allreduce (direct), operation 1, phase start",
             getpid());
    assert_string_equal(e->failure.text, want);
    assert_status((trib_status_t)e->failed, TRIB_ERR_PEER_LOST);
    assert_true(e->links[0].lost);
    engines_close(t);
}

/* The cause that a peer sent before it exited is reported as the failure, not its
 * exit. */
TEST(test_lost_with_a_cause)
{
    struct engines *t = engines_two("shm", true);
    struct trib_engine *e = &t->side[1].engine;

    write_notice(e, TRIB_OOB_NOTICE_FAILED, TRIB_ERR_NO_MEMORY, "because");
    trib_engine_lost(e, 0, false, "it has left");
    assert_string_equal(e->failure.text, "because");
    engines_close(t);
}

/* In the last barrier, and at an aggregator that has nothing to do, leaving is a peer's
 * right; dying never is. */
TEST(test_left)
{
    for (int k = 0; k < 8; k++) {
        const bool left = k & 1, leaving = k & 2, aggregator = k & 4;
        struct engines *t = engines_two("shm", true);
        struct trib_engine *e = &t->side[1].engine;
        t->side[1].run.desc.op.leaving = leaving;
        if (aggregator)
            e->ranks = 1;
        else
            engines_start_in_place(t, 1);
        trib_engine_lost(e, 0, left, "it has left");
        assert_int_equal(e->failed == 0, left && (leaving || aggregator));
        e->ranks = 2;
        engines_close(t);
    }
}

TEST(test_describes)
{
    struct engines *t = engines_two("shm", true);
    struct trib_engine *e = &t->side[0].engine;
    char text[200];

    trib_engine_describe(e, text, sizeof(text));
    assert_string_equal(text, "after operation 0, phase idle");
    t->side[0].run.desc.label = "layer";
    engines_start_in_place(t, 0);
    trib_engine_describe(e, text, sizeof(text));
    assert_string_equal(text, "allreduce \"layer\" (direct), operation 1, phase start");
    (void)trib_engine_progress(e);
    trib_engine_describe(e, text, sizeof(text));
    assert_non_null(strstr(text, "phase transfer"));
    t->side[0].run.desc.op.leaving = true;
    trib_engine_describe(e, text, sizeof(text));
    assert_string_equal(text, "trib_free_comm, operation 1, phase free");
    engines_close(t);
}

/* A frame of another operation, and one of this that is not due. */
TEST(test_misfit)
{
    for (int k = 0; k < 2; k++) {
        struct engines *t = engines_two("shm", true);
        struct engine_side *s = &t->side[1];
        s->run.desc.label = "layer";
        engines_start_in_place(t, 1);
        struct trib_frame f = s->run.now.frame;
        f.kind = TRIB_FRAME_DATA;
        f.count += k ? 0 : 7;
        trib_engine_misfit(&s->engine, &f, 0);
        const char *text = s->engine.failure.text;
        assert_status((trib_status_t)s->engine.failed,
                      k ? TRIB_ERR_PROTOCOL : TRIB_ERR_MISMATCH);
        if (k)
            engines_words(text, both);
        assert_non_null(
            strstr(text, k ? "a chunk out of order" : "; here the plan is \"layer\""));
        engines_close(t);
    }
}

TEST(test_unable)
{
    struct engines *t = engines_two("shm", true);
    struct trib_engine *e = &t->side[1].engine;

    engines_start_in_place(t, 1);
    trib_engine_unable(e, 0, TRIB_ERR_SYSTEM, "no more descriptors");
    assert_status((trib_status_t)e->failed, TRIB_ERR_SYSTEM);
    engines_words(e->failure.text,
                  (const char *const[]){"rank 1 (host here", "cannot reach a buffer of",
                                        "rank 0 (host here", "no more descriptors",
                                        NULL});
    engines_close(t);
}
