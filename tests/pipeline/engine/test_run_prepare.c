/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs before their first start: the accounted memory equals the allocated memory.
 * Without memory or a peer, preparation fails with an error message and frees
 * everything.
 */
#include "tests/pipeline/payload/payload_rig.h"

#include <malloc.h>

/* Sanitizer runtimes read these two functions. Make their malloc return NULL on
 * failure, as the C library's malloc does. */
TRIB_API const char *__asan_default_options(void);
TRIB_API const char *__tsan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static const struct payload_case cases[] = {
    {.ranks = 3, .count = 100000, .desc = {.piece = 16384}},
    {.codec = "f16", .ranks = 3, .count = 100000},
    {.codec = "exact", .ranks = 3, .count = 100000, .config = "chunk=64K"},
    {.codec = "qsgd:bits=4,ef=1", .ranks = 3, .count = 100000},
    {.codec = "topk", .feedback = "ef21", .ranks = 3, .count = 100000},
    {.codec = "topk",
     .ranks = 3,
     .count = 100000,
     .desc.quorum = {.need = 2, .deadline_ns = 1}},
    {.ranks = 3, .count = 50000, .desc = {.op.op = TRIB_MEAN, .op.dtype = TRIB_F16}},
};

static size_t allocated(void)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    const struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
#else
    return 0;
#endif
}

/* An aggregator's memory is accounted before it takes a plan: at least as much as the
 * plan allocates, and not much more. */
TEST(test_accounts)
{
    for (size_t k = 0; k < RIG_COUNT(cases); k++) {
        struct payload_case c = cases[k];
        c.aggregators = 1;
        struct rig r = rig_open_bare(&c);
        struct engine_side *s = rig_side(&r, c.ranks);
        const size_t none = allocated();
        uint64_t results;
        rig_plan(&r, c.ranks, &s->run);
        for (int i = 0; i < c.ranks; i++)
            assert_status(trib_engine_link(&s->engine, i), TRIB_OK);
        const size_t before = allocated();
        const uint64_t said = trib_run_bytes(&s->engine, &s->run, &results);
        assert_status(trib_run_prepare(&s->engine, &s->run), TRIB_OK);
        const size_t took = allocated() - before;
        const size_t slack = 4096; /* of malloc itself */
        if (took > said + slack || (none && said > 2 * took + 65536))
            fail_msg("case %zu: %zu bytes, and %zu are said", k, took, (size_t)said);
        assert_int_equal(results, 0); /* loop memory cannot be mapped */
        rig_close(&r);
    }
}

/* Memory in which peers read results is accounted separately, once for all plans. */
TEST(test_shared_results)
{
    const struct payload_case c = {.ranks = 2,
                                   .aggregators = 1,
                                   .count = 100000,
                                   .transport = "shm",
                                   .desc = {.zero_copy = true, .piece = 4096}};
    struct rig r = rig_open_bare(&c);
    struct engine_side *s = rig_side(&r, 2);
    struct trib_run second = {.payload = NULL};
    uint64_t results;

    rig_plan(&r, 2, &s->run);
    rig_plan(&r, 2, &second);
    for (int i = 0; i < 2; i++)
        assert_status(trib_engine_link(&s->engine, i), TRIB_OK);
    (void)trib_run_bytes(&s->engine, &s->run, &results);
    assert_true(results >= 4096 * sizeof(float));
    assert_status(trib_run_prepare(&s->engine, &s->run), TRIB_OK);
    assert_int_equal(s->engine.results.bytes, results);
    (void)trib_run_bytes(&s->engine, &second, &results);
    assert_int_equal(results, 0);
    assert_status(trib_run_prepare(&s->engine, &second), TRIB_OK);
    trib_run_dispose(&second);
    rig_close(&r);
}

/* More memory than the address space holds: an error message, and no leak. */
TEST(test_no_memory)
{
    static const struct {
        const char *codec, *feedback;
        trib_feed_t feed;
        bool may_undo;
    } rows[] = {
        {"topk", NULL, TRIB_FEED_WHOLE, false},
        {"topk", "ef14:momentum=0.9", TRIB_FEED_WHOLE, false},
        {"f16", NULL, TRIB_FEED_WHOLE, true},
        {NULL, NULL, TRIB_FEED_WHOLE, true},
        {NULL, NULL, TRIB_FEED_FORWARD, false},
    };

    for (size_t k = 0; k < RIG_COUNT(rows); k++) {
        const struct payload_case c = {
            .codec = rows[k].codec,
            .feedback = rows[k].feedback,
            .ranks = 1,
            .aggregators = 1,
            .count = 100,
            .desc = {.op.feed = rows[k].feed, .may_undo = rows[k].may_undo}};
        struct rig r = rig_open_bare(&c);
        struct engine_side *s = rig_side(&r, 0);
        rig_plan(&r, 0, &s->run);
        s->run.desc.total = (size_t)1 << 50;
        if (rows[k].feed) /* a product that no size_t holds */
            s->run.desc.rounds = s->run.desc.n_chunks = UINT32_MAX;
        assert_status(trib_run_prepare(&s->engine, &s->run), TRIB_ERR_NO_MEMORY);
        assert_string_equal(trib_error_text(s->engine.err),
                            "no memory for a plan of 100 elements");
        assert_int_equal(s->engine.failed, 0);
        trib_run_dispose(&s->run);
        s->run = (struct trib_run){.payload = NULL};
        rig_close(&r);
    }
}

/* Only ranks have counters of the elements that the caller marked as ready. */
TEST(test_feed)
{
    for (int feed = 0; feed < 3; feed++) {
        const struct payload_case c = {.ranks = 1,
                                       .aggregators = 1,
                                       .count = 3000,
                                       .desc.op.feed = (trib_feed_t)feed};
        struct rig r = rig_open(&c);
        assert_int_equal(rig_side(&r, 0)->run.now.unfed != NULL,
                         feed != TRIB_FEED_WHOLE);
        assert_null(rig_side(&r, 1)->run.now.unfed);
        rig_close(&r);
    }
}

/* All frames of a run have a template in common, and the root alone has a result. */
TEST(test_template)
{
    const struct payload_case c = {.algorithm = "tree",
                                   .ranks = 2,
                                   .count = 777,
                                   .desc = {.op.coll = TRIB_REDUCE, .digest = 99}};
    struct rig r = rig_open(&c);

    for (int i = 0; i < 2; i++) {
        const struct trib_run *run = &rig_side(&r, i)->run;
        assert_int_equal(run->now.frame.magic, TRIB_FRAME_MAGIC);
        assert_int_equal(run->now.frame.count, 777);
        assert_int_equal(run->now.frame.digest, 99);
        assert_int_equal(run->now.frame.signature, trib_frame_signature(&run->desc.op));
        assert_int_equal(run->no_result, i != 0);
        assert_true(rig_side(&r, i)->engine.links[1 - i].opened);
    }
    rig_close(&r);
}
