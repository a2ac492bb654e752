/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DGC's selection: how many, and that they are the largest.
 */
#include "tests/compress/vectors.h"

/* Encode with k of n elements: the codec sends 0.8 k to k, or all that are not zero. No
 * sent element is smaller than an omitted one. Return the number sent. */
static size_t check(const float *x, size_t n, size_t k, uint32_t step)
{
    char text[64];
    snprintf(text, sizeof text, "dgc:k=%zu", k);
    struct codec_buffers b = buffers_new(text, NULL, n);
    float *y = malloc(n * sizeof *y), least = INFINITY, left = 0;
    size_t sent = 0, nonzero = 0;
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, step);
    decode(&b, y);
    const bool dense = b.code[0] == 0;
    for (size_t i = 0; i < n; i++) {
        nonzero += x[i] != 0;
        sent += y[i] != 0;
        assert_true(y[i] == 0 || y[i] == x[i]);
        if (y[i] != 0)
            least = fminf(least, fabsf(x[i]));
        else
            left = fmaxf(left, fabsf(x[i]));
    }
    assert_true(least >= left);
    if (k > n)
        k = n;
    if (!dense && (sent > k || (5 * sent < 4 * k && sent != nonzero)))
        fail_msg("%zu of %zu elements, %zu not zero: sent %zu", k, n, nonzero, sent);
    free(y);
    buffers_free(&b);
    return sent;
}

TEST(test_count)
{
    static const size_t sizes[] = {1, 2, 31, 1000, 20000, 60000};
    for (int kind = 0; kind < VECTOR_KINDS; kind++) {
        for (int s = 0; s < 6; s++) {
            const size_t n = sizes[s];
            float *x = vector_new((enum vector_kind)kind, 2, n);
            const size_t ks[] = {1, n / 1000 + 1, n / 100 + 1, n / 3 + 1, n};
            for (int i = 0; i < 5; i++)
                for (uint32_t step = 0; step < 4; step++)
                    check(x, n, ks[i], step);
            free(x);
        }
    }
}

/* Data that misleads a strided sample: large only between the samples, or only at the
 * samples. */
TEST(test_misleading)
{
    enum { N = 40000 };
    float *x = vector_new(VECTOR_NORMAL, 2, N);
    for (int period = 2; period < 130; period += 3) {
        float *y = malloc(N * sizeof *y);
        for (int i = 0; i < N; i++)
            y[i] = x[i] * (i % period == 0 ? 1e6f : 1.0f);
        check(y, N, N / 100, 1);
        check(y, N, N / 10, 1);
        free(y);
    }
    for (int i = 0; i < N; i++)
        x[i] = i < N - 50 ? 1e-30f * x[i] : x[i];
    for (size_t k = 10; k < 1000; k *= 2)
        check(x, N, k, 2);
    memset(x, 0, N * sizeof *x);
    for (int i = 0; i < 300; i++)
        x[i * 61] = (float)(i + 1);
    for (size_t k = 10; k < 1000; k *= 2)
        check(x, N, k, 3);
    free(x);
}

/* Too many: the largest, wherever they are; the first k would leave the end out for
 * ever. */
TEST(test_cut_by_magnitude)
{
    enum { N = 10000, K = 100 };
    float *x = malloc(N * sizeof *x), y[N];
    for (int i = 0; i < N; i++)
        x[i] = 1.0f + 1e-6f * (float)i;
    for (uint32_t step = 0; step < 20; step++) {
        struct codec_buffers b = buffers_new("dgc:ratio=0.01", NULL, N);
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, step);
        decode(&b, y);
        assert_true(y[N - 1] == x[N - 1] && y[N - K - 1] == 0);
        buffers_free(&b);
    }
    free(x);
}

/* Between 0.8 k and k nothing is cut, so counts differ from step to step. */
TEST(test_between)
{
    enum { N = 50000, K = 500 };
    int below = 0, full = 0;
    float *x = vector_new(VECTOR_NORMAL, 9, N);
    for (uint32_t step = 0; step < 40; step++) {
        const size_t sent = check(x, N, K, step);
        below += sent < K;
        full += sent == K;
    }
    assert_true(below > 0 && full > 0);
    free(x);
}

/* NaN and Inf are sent first, whether fewer or more than k. */
TEST(test_not_finite)
{
    enum { N = 5000, K = 50 };
    for (int bad = 1; bad < 200; bad *= 3) {
        float *x = vector_new(VECTOR_NORMAL, 9, N), y[N];
        struct codec_buffers b = buffers_new("dgc:k=50", NULL, N);
        int seen = 0;
        for (int i = 0; i < bad; i++)
            x[i * 23 + 1] = i % 2 ? INFINITY : NAN;
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
        decode(&b, y);
        for (int i = 0; i < N; i++)
            seen += !isfinite(y[i]);
        assert_int_equal(seen, bad < K ? bad : K);
        free(x);
        buffers_free(&b);
    }
}
