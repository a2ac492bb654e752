/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TRIB_CHECK: its texts, the first element that is not finite, the norm, and the error
 * message that names the rank that contributed it.
 */
#include "tests/pipeline/payload/payload_rig.h"

#include <math.h>

#include "pipeline/payload/check.h"

TEST(test_texts)
{
    static const char *const bad[] = {
        "",         "norm",    "norm:",         "norm:0",   "norm:-1",
        "norm:nan", "norm:1x", "finit",         "none ",    "sum,",
        ",sum",     "sum,sum", "finite,norm:1", "none,sum", "sum none"};
    struct trib_error err = {0};
    struct trib_check c;

    for (size_t i = 0; i < RIG_COUNT(bad); i++) {
        assert_status(trib_check_parse(bad[i], &err, &c), TRIB_ERR_CONFIG);
        assert_non_null(strstr(trib_error_text(&err), "must be none, finite, norm:X"));
        assert_true(!c.finite && !c.sum);
    }
    assert_status(trib_check_parse("none", &err, &c), TRIB_OK);
    assert_true(!c.finite && c.norm <= 0);
    assert_status(trib_check_parse("norm:1e6", &err, &c), TRIB_OK);
    assert_true(c.finite && !c.sum && c.norm >= 1e6 && c.norm <= 1e6);
    assert_status(trib_check_parse("sum", &err, &c), TRIB_OK);
    assert_true(c.sum && !c.finite);
    assert_status(trib_check_parse("norm:2,sum", &err, &c), TRIB_OK);
    assert_true(c.sum && c.finite && c.norm >= 2 && c.norm <= 2);
    assert_status(trib_check_parse("sum,finite", &err, &c), TRIB_OK);
    assert_true(c.sum && c.finite && c.norm <= 0);
}

/* At any position, in every type that has such elements. */
TEST(test_first_bad)
{
    enum { N = 700 };
    static uint8_t bytes[N * 8 + 1];
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    struct rig r = {.kernels = trib_kernels_get(NULL)};

    for (int dtype = 0; dtype < TRIB_DTYPE_COUNT; dtype++) {
        uint8_t *x = bytes + 1;
        r.c.desc.op.dtype = (trib_dtype_t)dtype;
        for (size_t i = 0; i < N; i++)
            rig_put(&r, x, i, rig_given(0, 0, i));
        assert_int_equal(trib_check_first_bad(r.kernels, dtype, x, N), N);
        for (size_t at = N; dtype <= TRIB_BF16 && at-- > 0;) {
            rig_put(&r, x, at, bad[at % 3]);
            assert_int_equal(trib_check_first_bad(r.kernels, dtype, x, N), at);
            assert_int_equal(trib_check_first_bad(r.kernels, dtype, x, at), at);
        }
    }
}

TEST(test_squares)
{
    enum { N = 700 };
    static uint8_t x[N * 8];
    struct rig r = {.kernels = trib_kernels_get(NULL)};

    for (int dtype = 0; dtype <= TRIB_BF16; dtype++) {
        double want = 0;
        r.c.desc.op.dtype = (trib_dtype_t)dtype;
        for (size_t i = 0; i < N; i++) {
            rig_put(&r, x, i, rig_given(0, 0, i));
            want += (double)rig_given(0, 0, i) * (double)rig_given(0, 0, i);
        }
        const double got = trib_check_squares(dtype, r.kernels, x, N);
        assert_true(got >= want && got <= want);
    }
}

/* Ranks that sum rank 2's contribution detect and report it; other ranks do not check
 * it. */
TEST(test_peers)
{
    enum { COUNT = 3000, AT = 2345 };

    for (int k = 0; k < 8; k++) {
        const bool finite = k & 1, gathers = k & 2;
        const struct payload_case c = {
            .algorithm = gathers ? "flat" : "ring",
            .ranks = 3,
            .count = COUNT,
            .transport = k & 4 ? "shm" : "loop",
            .desc = {.op.dtype = k & 4 ? TRIB_F32 : TRIB_F16,
                     .check.finite = finite,
                     .zero_copy = k & 4}};
        struct rig r = rig_open(&c);
        assert_int_equal(rig_side(&r, 0)->run.desc.gathers, gathers);
        rig_side(&r, 0)->run.desc.label = "layer";
        rig_fill(&r, 0);
        rig_put(&r, rig_input(&r, 2), AT, NAN);
        for (int i = 0; i < 3; i++)
            rig_start_one(&r, i);
        for (int i = 0; i < 3000 && !rig_over(&r); i++)
            (void)trib_engine_progress(&rig_side(&r, i % 3)->engine);
        const struct trib_engine *e = &rig_side(&r, 0)->engine;
        assert_status((trib_status_t)e->failed,
                      finite && gathers ? TRIB_ERR_INVALID : TRIB_OK);
        if (e->failed)
            assert_non_null(strstr(e->failure.text,
                                   "rank 2 gave NaN or an infinity, element 2345"));
        rig_close(&r);
    }
}

/* The error message includes the plan's name, if it has one. */
TEST(test_sentence)
{
    static const char *const labels[] = {NULL, "layer"};

    for (int k = 0; k < 2; k++) {
        const struct payload_case c = {.algorithm = "flat",
                                       .ranks = 2,
                                       .count = 300,
                                       .desc.check.finite = true};
        struct rig r = rig_open(&c);
        struct engine_side *s = rig_side(&r, 0);
        const struct trib_chunk chunk = {.first = 40, .n = 3};
        static const float x[3] = {1, 2, INFINITY};
        s->run.desc.label = labels[k];
        assert_status(trib_check_peer(&s->engine, &s->run, &chunk, 2, x), TRIB_OK);
        assert_status((trib_status_t)s->engine.failed, TRIB_OK); /* of an aggregator */
        assert_status(trib_check_peer(&s->engine, &s->run, &chunk, 1, x),
                      TRIB_ERR_INVALID);
        assert_string_equal(s->engine.failure.text,
                            k ? "rank 1 gave NaN or an infinity, element 42 of "
                                "\"layer\", in allreduce (TRIB_CHECK)"
                              : "rank 1 gave NaN or an infinity, element 42, in "
                                "allreduce (TRIB_CHECK)");
        rig_close(&r);
    }
}
