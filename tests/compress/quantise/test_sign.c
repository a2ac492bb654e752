/* SPDX-License-Identifier: BSD-3-Clause */
/* 1-bit SGD and EF-signSGD, compared with the claims of their papers. */
#include "tests/compress/vectors.h"

enum { N = 3000, BUCKET = 512 };

static size_t bucket_end(size_t first)
{
    return first + BUCKET < N ? first + BUCKET : N;
}

static double sum(const float *x, size_t from, size_t to)
{
    double s = 0;
    for (size_t i = from; i < to; i++)
        s += (double)x[i];
    return s;
}

static double magnitudes(const float *x, size_t from, size_t to)
{
    double s = 0;
    for (size_t i = from; i < to; i++)
        s += fabs((double)x[i]);
    return s;
}

TEST(test_sizes)
{
    struct codec_buffers o = buffers_new("onebit", NULL, 1025),
                         e = buffers_new("efsign", NULL, 1025);
    assert_int_equal(trib_codec_bound(o.codec, 1025), 3 * 8 + 129);
    assert_int_equal(trib_codec_bound(e.codec, 1025), 3 * 4 + 129);
    assert_int_equal(trib_codec_bound(o.codec, 0), 0);
    buffers_free(&o), buffers_free(&e);
}

/* One value a side, and each bucket keeps its sum: the residual has a mean of 0. */
TEST(test_means)
{
    struct codec_buffers b = buffers_new("onebit", NULL, N);
    for (int kind = 0; kind < VECTOR_KINDS; kind++) {
        float *x = vector_new((enum vector_kind)kind, 5, N), y[N];
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
        decode(&b, y);
        for (size_t at = 0; at < N; at = bucket_end(at)) {
            const size_t end = bucket_end(at);
            float side[2] = {NAN, NAN};
            assert_true(fabs(sum(x, at, end) - sum(y, at, end)) <=
                        1e-5 * magnitudes(x, at, end));
            for (size_t i = at; i < end; i++) {
                float *s = &side[signbit(x[i]) != 0];
                assert_true(isnan(*s) || *s == y[i]);
                *s = y[i];
                assert_true(y[i] == 0 || signbit(x[i]) == signbit(y[i]));
            }
        }
        free(x);
    }
    buffers_free(&b);
}

/* The means are the best two values for these sides. */
TEST(test_means_are_best)
{
    struct codec_buffers b = buffers_new("onebit", NULL, N),
                         e = buffers_new("efsign", NULL, N);
    for (int kind = VECTOR_NORMAL; kind < VECTOR_KINDS; kind++) {
        float *x = vector_new((enum vector_kind)kind, 5, N), y[N], z[N];
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
        decode(&b, y);
        encode(&e, x, TRIB_ENCODE_CONTRIBUTION, 0);
        decode(&e, z);
        const double best = square_distance(x, y, N);
        assert_true(best <= square_distance(x, z, N) * (1 + 1e-6));
        for (int i = 0; i < N; i++)
            z[i] = signbit(x[i]) ? y[i] * 1.01f : y[i] * 0.99f;
        assert_true(best <= square_distance(x, z, N) * (1 + 1e-6));
        free(x);
    }
    buffers_free(&b), buffers_free(&e);
}

/* |C(x) - x|^2 = |x|^2 - |x|_1^2 / n */
TEST(test_error_of_efsign)
{
    struct codec_buffers b = buffers_new("efsign", NULL, N);
    for (int kind = 0; kind < VECTOR_KINDS; kind++) {
        float *x = vector_new((enum vector_kind)kind, 5, N), y[N];
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
        decode(&b, y);
        for (size_t at = 0; at < N; at = bucket_end(at)) {
            const size_t n = bucket_end(at) - at;
            const double l1 = magnitudes(x, at, at + n), l2 = square_sum(x + at, n);
            const double error = square_distance(x + at, y + at, n);
            assert_true(fabs(error - (l2 - l1 * l1 / (double)n)) <= 1e-5 * l2);
        }
        free(x);
    }
    buffers_free(&b);
}

/* Encoding a decoded vector again does not change it. */
TEST(test_idempotent)
{
    static const char *const texts[] = {"onebit", "efsign"};
    for (int t = 0; t < 2; t++) {
        struct codec_buffers b = buffers_new(texts[t], NULL, N);
        float *x = vector_new(VECTOR_POWER_LAW, 5, N), y[N], z[N];
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
        decode(&b, y);
        encode(&b, y, TRIB_ENCODE_CONTRIBUTION, 1);
        decode(&b, z);
        for (int i = 0; i < N; i++)
            assert_true(fabsf(y[i] - z[i]) <= 1e-5f * fabsf(y[i]));
        free(x);
        buffers_free(&b);
    }
}

/* Sums beyond the range of f32; one bad element spoils its bucket, no other. */
TEST(test_extremes)
{
    static const char *const texts[] = {"onebit", "efsign"};
    for (int t = 0; t < 2; t++) {
        struct codec_buffers b = buffers_new(texts[t], NULL, N);
        float x[N], y[N];
        for (int i = 0; i < N; i++)
            x[i] = i % 2 ? FLT_MAX : -FLT_MAX;
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
        decode(&b, y);
        assert_memory_equal(x, y, sizeof x);
        x[600] = NAN;
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
        decode(&b, y);
        for (int i = 0; i < N; i++)
            assert_int_equal(isnan(y[i]) != 0, i / BUCKET == 1);
        buffers_free(&b);
    }
}
