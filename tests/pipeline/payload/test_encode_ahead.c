/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contributions that workers encode ahead: the same bytes as without workers, none for
 * plans that gain nothing, and idle workers after an operation finishes.
 */
#include "tests/pipeline/payload/payload_rig.h"

#include "base/time.h"
#include "base/workers.h"
#include "pipeline/payload/encode_ahead.h"

enum { COUNT = 20000, STEPS = 3 };

static const char *const codecs[] = {"qsgd:bits=4,ef=1", "topk:ratio=0.1", "efsign",
                                     "exact", "f16"};
static const char *const algorithms[] = {"flat", "direct", "tree", "ring"};

static struct payload_case case_of(int k, int threads)
{
    static const char *const configs[] = {"chunk=64K", "chunk=64K;encode_threads=1",
                                          "chunk=64K;encode_threads=3"};

    return (struct payload_case){.codec = codecs[k % 5],
                                 .algorithm = algorithms[k % 4],
                                 .ranks = 2,
                                 .count = COUNT,
                                 .transport = k & 1 ? "shm" : "loop",
                                 .config = configs[threads]};
}

/* Result and residual of rank 1 after some steps. */
struct outcome {
    float y[COUNT];
    float residual[COUNT];
};

static uint64_t run(const struct payload_case *c, struct outcome *out)
{
    struct rig r = rig_open(c);
    const struct engine_side *s = rig_side(&r, 1);
    uint64_t ahead;

    for (int step = 0; step < STEPS; step++) {
        rig_step(&r, step);
        rig_same(&r);
        if (s->engine.workers)
            assert_int_equal(trib_workers_free(s->engine.workers),
                             4 * (size_t)s->engine.cfg->encode_threads);
    }
    memcpy(out->y, rig_result(&r, 1), sizeof(out->y));
    if (s->run.payload->feedback.residual)
        memcpy(out->residual, s->run.payload->feedback.residual, sizeof(out->residual));
    ahead = s->engine.stats.words_ahead;
    rig_close(&r);
    return ahead;
}

TEST(test_same_words)
{
    static struct outcome without, with;

    for (int k = 0; k < 20; k++) {
        for (int threads = 0; threads < 3; threads++) {
            const struct payload_case c = case_of(k, threads);
            struct outcome *o = threads ? &with : &without;
            memset(o, 0, sizeof(*o));
            const uint64_t ahead = run(&c, o);
            assert_true(threads || ahead == 0);
            if (threads)
                assert_memory_equal(&with, &without, sizeof(with));
        }
    }
}

static bool any_done(const struct trib_engine *e)
{
    for (uint32_t cell = 0; cell < 12; cell++)
        if (trib_workers_done(e->workers, cell))
            return true;
    return false;
}

/* While this rank waits for the other one, its workers keep encoding, and the engine
 * uses their output. */
TEST(test_ahead)
{
    const struct payload_case c = case_of(1, 2);
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    struct rig r = rig_open(&c);
    struct trib_engine *e = &rig_side(&r, 0)->engine;

    rig_fill(&r, 0);
    rig_start_one(&r, 0);
    while (!any_done(e) && !trib_deadline_passed(until)) {
        (void)trib_engine_progress(e);
        sched_yield();
    }
    assert_true(any_done(e));
    rig_start_one(&r, 1);
    rig_drive(&r);
    rig_same(&r);
    assert_true(e->stats.words_ahead > 0);
    assert_true(e->stats.encode_ns > 0);
    rig_close(&r);
}

/* Neither without a codec or threads, nor of chunks that are too small, or too few, or
 * that share bytes of a mask. */
TEST(test_none)
{
    static const struct {
        const char *codec, *config;
        size_t count, piece;
        bool ahead;
    } rows[] = {
        {"topk", "encode_threads=2", 8192, 1024, true},
        {NULL, "encode_threads=2", 8192, 1024, false},
        {"topk", "", 8192, 1024, false},
        {"topk", "encode_threads=2", 8192, 1000, false},
        {"f16", "encode_threads=2", 2048, 1024, false},
        {"topk", "encode_threads=2", 8000, 1027, false},
        {"qsgd", "encode_threads=2", 8000, 1027, true},
    };

    for (size_t k = 0; k < RIG_COUNT(rows); k++) {
        const struct payload_case c = {.codec = rows[k].codec,
                                       .algorithm = "direct",
                                       .ranks = 2,
                                       .count = rows[k].count,
                                       .config = rows[k].config,
                                       .desc.piece = rows[k].piece};
        struct rig r = rig_open(&c);
        if ((rig_side(&r, 0)->run.payload->encode_ahead != NULL) != rows[k].ahead)
            fail_msg("row %zu", k);
        rig_close(&r);
    }
}

/* A failure in the middle cancels encoded chunks that were not used: the caller may
 * free its memory. */
TEST(test_failure)
{
    for (int passes = 0; passes < 6; passes++) {
        const struct payload_case c = case_of(0, 2);
        struct rig r = rig_open(&c);
        struct trib_engine *e = &rig_side(&r, 0)->engine;
        rig_fill(&r, 0);
        rig_start_one(&r, 0);
        for (int i = 0; i < passes; i++) /* the peer never starts */
            (void)trib_engine_progress(e);
        assert_int_equal(trib_workers_free(e->workers) < 12, passes > 0);
        trib_engine_fail(e, TRIB_ERR_TIMEOUT, "a test");
        assert_int_equal(trib_workers_free(e->workers), 12);
        assert_int_equal(rig_side(&r, 0)->run.now.state, TRIB_RUN_DONE);
        memset(rig_input(&r, 0), 0xff, COUNT * sizeof(float));
        rig_close(&r);
    }
}
