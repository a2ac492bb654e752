/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The k largest against a sort, on data that misleads a sample.
 */
#include "tests/compress/vectors.h"

#include "compress/stages.h"

static const float *sorted_x; /* qsort has no argument to pass */

static int by_magnitude(const void *a, const void *b)
{
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    uint32_t u, v;
    memcpy(&u, sorted_x + i, 4), memcpy(&v, sorted_x + j, 4);
    u &= 0x7fffffff, v &= 0x7fffffff;
    if (u != v)
        return u > v ? -1 : 1;
    return i < j ? -1 : 1;
}

static int by_position(const void *a, const void *b)
{
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    return i < j ? -1 : i > j;
}

static void check(const float *x, size_t n, size_t k)
{
    uint32_t *order = malloc(n * sizeof *order);
    uint32_t *got = malloc((n + 64) * sizeof *got),
             *work = malloc((n + 64) * sizeof *work);
    size_t expected = 0;
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    sorted_x = x;
    qsort(order, n, sizeof *order, by_magnitude);
    while (expected < k && expected < n && x[order[expected]] != 0.0f)
        expected++;
    qsort(order, expected, sizeof *order, by_position);
    const size_t m = trib_select_largest(trib_kernels_get(NULL), x, n, k, got, work);
    assert_int_equal(m, expected);
    assert_memory_equal(got, order, m * sizeof *got);
    free(order), free(got), free(work);
}

TEST(test_kinds)
{
    static const size_t sizes[] = {1, 2, 31, 1000, 20000, 60000};
    for (int kind = 0; kind < VECTOR_KINDS; kind++) {
        for (int s = 0; s < 6; s++) {
            const size_t n = sizes[s];
            float *x = vector_new((enum vector_kind)kind, 2, n);
            const size_t ks[] = {1,         n / 1000 + 1, n / 100 + 1,
                                 n / 3 + 1, n - n / 50,   n};
            for (int i = 0; i < 6; i++)
                check(x, n, ks[i]);
            free(x);
        }
    }
}

/* large at the sampled positions, small elsewhere, and vice versa; NaN and Inf */
TEST(test_misleading)
{
    enum { N = 40000 };
    float *x = vector_new(VECTOR_NORMAL, 2, N);
    for (int i = 0; i < N; i++)
        x[i] *= i % 4 == 0 ? 1000.0f : 1.0f;
    check(x, N, N / 8);
    check(x, N, N / 2);
    for (int i = 0; i < N; i++)
        x[i] = i < N - 50 ? 1e-30f : x[i];
    check(x, N, 40);
    check(x, N, 60);
    x[7] = NAN, x[9] = -INFINITY, x[11] = -0.0f;
    check(x, N, 3);
    free(x);
}

/* A sample rank that undershoots must not lose elements. */
TEST(test_few_large)
{
    enum { N = 200000 };
    float *x = calloc(N, sizeof *x);
    for (int i = 0; i < 300; i++)
        x[(i * 661) % N] = (float)(i + 1);
    for (size_t k = 1; k < 400; k += 37)
        check(x, N, k);
    free(x);
}
