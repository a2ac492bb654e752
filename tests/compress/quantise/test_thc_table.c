/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * THC's tables, and the kernels that round to their points.
 */
#include "tests/compress/kernels/isas.h"

#include "compress/quantise/thc_table.h"
#include "tests/compress/vectors.h"

#define FOR_EACH_TABLE(p) \
    for (int p = TRIB_THC_LOG2_P_MIN; p <= TRIB_THC_LOG2_P_MAX; p++)

TEST(test_tables)
{
    assert_null(trib_thc_table(TRIB_THC_LOG2_P_MIN - 1));
    assert_null(trib_thc_table(TRIB_THC_LOG2_P_MAX + 1));
    FOR_EACH_TABLE(p) {
        const struct trib_thc_table *t = trib_thc_table(p);
        assert_int_equal(t->value[0], 0);
        assert_int_equal(t->value[TRIB_GRID_SYMBOLS - 1], t->highest);
        for (int i = 0; i < TRIB_GRID_SYMBOLS; i++) {
            assert_int_equal(t->value[i] + t->value[TRIB_GRID_SYMBOLS - 1 - i],
                             t->highest);
            assert_true(i == 0 || t->value[i] > t->value[i - 1]);
        }
        /* a normal value leaves the bound with probability p */
        assert_true(fabs(erfc((double)t->bound / sqrt(2)) * ldexp(1, p) - 1) < 1e-6);
        assert_true(8 * t->highest <= UINT8_MAX && 2184 * t->highest <= UINT16_MAX);
    }
}

TEST(test_same_bits)
{
    enum { N = 300 };
    const struct trib_kernels *isas[4];
    const int n_isas = isas_of_cpu(isas);
    uint8_t expected[N], points[N];
    for (size_t n = 0; n < N; n++) {
        struct guarded from = guarded_new(n * sizeof(float)), to = guarded_new(n);
        const struct trib_thc_table *t = trib_thc_table(4 + (int)(n % 6));
        const uint32_t key[2] = {(uint32_t)n * 77777u, (uint32_t)n};
        struct trib_grid g;
        float *x = from.p;
        trib_thc_grid(t, 0.3f, key, &g);
        for (size_t i = 0; i < n; i++)
            x[i] = odd_float(n, i, true);
        isas[0]->grid_encode(expected, x, n, &g);
        for (int a = 1; a < n_isas; a++) {
            isas[a]->grid_encode(to.p, x, n, &g);
            assert_memory_equal(to.p, expected, n);
        }
        for (size_t i = 0; i < n; i++)
            expected[i] |= (uint8_t)(i << 4); /* bits above a symbol do not count */
        isas[0]->grid_points(points, expected, n, t->value);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(points[i], t->value[expected[i] & 15]);
        for (int a = 1; a < n_isas; a++) {
            memcpy(to.p, expected, n);
            isas[a]->grid_points(to.p, to.p, n, t->value);
            assert_memory_equal(to.p, points, n);
        }
        guarded_free(&from), guarded_free(&to);
    }
}

/* A value on a point is encoded exactly for every draw; values beyond the bound clip to
 * it. */
TEST(test_points_are_hit)
{
    const struct trib_kernels *k = trib_kernels_get(NULL);
    FOR_EACH_TABLE(p) {
        const struct trib_thc_table *t = trib_thc_table(p);
        for (uint32_t draw = 0; draw < 200; draw++) {
            const uint32_t key[2] = {draw * 1234567u, draw};
            struct trib_grid g;
            trib_thc_grid(t, 2.0f, key, &g);
            g.scale = 1; /* so that points are exact */
            uint8_t symbols[TRIB_GRID_SYMBOLS + 4];
            float x[TRIB_GRID_SYMBOLS + 4];
            for (int i = 0; i < TRIB_GRID_SYMBOLS; i++)
                x[i] = (float)t->value[i] - g.middle;
            x[16] = -1e30f, x[17] = NAN, x[18] = INFINITY, x[19] = 15.5f;
            k->grid_encode(symbols, x, TRIB_GRID_SYMBOLS + 4, &g);
            for (int i = 0; i < TRIB_GRID_SYMBOLS; i++)
                assert_int_equal(symbols[i], i);
            assert_int_equal(symbols[16], 0);
            assert_int_equal(symbols[17], 0);
            assert_int_equal(symbols[18], 15);
            assert_int_equal(symbols[19], 15);
        }
    }
}

/* The mean over draws is the value, where it is not clamped: within 5 sigma. */
TEST(test_unbiased)
{
    enum { N = 512, DRAWS = 4000 };
    const struct trib_kernels *k = trib_kernels_get(NULL);
    const float deviation = 0.02f;
    static float x[N];
    static uint8_t symbols[N], points[N];
    FOR_EACH_TABLE(p) {
        const struct trib_thc_table *t = trib_thc_table(p);
        const double step = (double)trib_thc_step(t, deviation);
        static double sum[N], squares[N];
        memset(sum, 0, sizeof sum), memset(squares, 0, sizeof squares);
        for (size_t i = 0; i < N; i++) /* over the whole range */
            x[i] = deviation * t->bound * ((float)i / (N - 1) * 2 - 1);
        for (uint32_t draw = 0; draw < DRAWS; draw++) {
            const struct trib_rng_block r =
                trib_rng_draw4((struct trib_rng){.seed = 3}, draw);
            struct trib_grid g;
            trib_thc_grid(t, deviation, r.word, &g);
            k->grid_encode(symbols, x, N, &g);
            k->grid_points(points, symbols, N, t->value);
            for (size_t i = 0; i < N; i++) {
                const double v = (points[i] - 0.5 * t->highest) * step;
                sum[i] += v;
                squares[i] += (v - (double)x[i]) * (v - (double)x[i]);
            }
        }
        double total = 0, variance = 0;
        for (size_t i = 0; i < N; i++) {
            const double error = sum[i] - DRAWS * (double)x[i];
            assert_true(fabs(error) <= 5 * sqrt(squares[i]) + 1e-5 * DRAWS * step);
            total += error, variance += squares[i];
        }
        assert_true(fabs(total) <= 5 * sqrt(variance));
    }
}

/* Add the points of ranks, then decode: the result is the mean of the decoded
 * points. */
TEST(test_sums)
{
    enum { N = 1000, RANKS = 8 };
    const struct trib_kernels *k = trib_kernels_get(NULL);
    const struct trib_thc_table *t = trib_thc_table(TRIB_THC_LOG2_P);
    const double step = (double)trib_thc_step(t, 1.0f);
    static uint8_t points[N], lanes[N];
    static double mean[N];
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        const uint32_t key[2] = {rank, 1};
        struct trib_grid g;
        float *x = vector_new(VECTOR_NORMAL, rank, N);
        if (rank % 2)
            x[7] = 1e9f;
        trib_thc_grid(t, 1.0f, key, &g);
        k->grid_encode(points, x, N, &g);
        k->grid_points(points, points, N, t->value);
        for (size_t i = 0; i < N; i++)
            mean[i] += (points[i] - 0.5 * t->highest) * step / RANKS;
        const struct trib_reduce_args sum = {
            .src = {lanes, points}, .dst = {lanes}, .n_src = 2, .n_dst = 1, .n = N};
        k->reduce[TRIB_I8][TRIB_SUM](&sum);
        free(x);
    }
    for (size_t i = 0; i < N; i++) {
        const double v = ((double)lanes[i] / RANKS - 0.5 * t->highest) * step;
        assert_true(fabs(v - mean[i]) < 1e-9);
    }
}
