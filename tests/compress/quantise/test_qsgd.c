/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/compress/quantise/bucket_checks.h"

TEST(test_sizes)
{
    struct codec_buffers b = buffers_new("qsgd:bits=4,bucket=512", NULL, 1025);
    assert_int_equal(trib_codec_bound(b.codec, 1025), 3 * 4 + 513);
    assert_int_equal(trib_codec_bound(b.codec, 0), 0);
    assert_int_equal(trib_codec_bound(b.codec, 1), 5);
    buffers_free(&b);
}

/* A one-hot bucket decodes exactly, including its zeros. */
TEST(test_one_hot)
{
    static const char *const texts[] = {"qsgd", "qsgd:bits=2,norm=l2",
                                        "qsgd:bits=8,norm=max"};
    for (int t = 0; t < 3; t++) {
        struct codec_buffers b = buffers_new(texts[t], NULL, 600);
        float x[600] = {0}, y[600];
        for (int i = 0; i < 600; i += 7) {
            memset(x, 0, sizeof x);
            x[i] = normal_at(3, (uint64_t)i) * 1e5f;
            encode(&b, x, TRIB_ENCODE_CONTRIBUTION, (uint32_t)i);
            decode(&b, y);
            assert_memory_equal(x, y, sizeof x);
        }
        buffers_free(&b);
    }
}

/* equal buckets draw different numbers, and so do the parts of a long one */
TEST(test_draws_differ)
{
    enum { N = 4096 };
    static const char *const texts[] = {"qsgd:bits=8,bucket=512",
                                        "qsgd:bits=8,bucket=4096"};
    for (int t = 0; t < 2; t++) {
        struct codec_buffers b = buffers_new(texts[t], NULL, N);
        float x[N], y[N];
        for (int i = 0; i < N; i++)
            x[i] = vector_at(VECTOR_NORMAL, 1, (size_t)i % 512);
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
        decode(&b, y);
        for (int i = 512; i < N; i += 512)
            assert_memory_not_equal(y, y + i, 512 * sizeof *y);
        buffers_free(&b);
    }
}

/* every value is a multiple of norm / s within one level of the element */
TEST(test_levels)
{
    enum { N = 3000, BUCKET = 128 };
    struct codec_buffers b = buffers_new("qsgd:bits=5,bucket=128,norm=l2", NULL, N);
    float *x = vector_new(VECTOR_NORMAL, 5, N), *y = malloc(N * sizeof *y);
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&b, y);
    for (int first = 0; first < N; first += BUCKET) {
        const int n = first + BUCKET < N ? BUCKET : N - first;
        const double norm = sqrt(square_sum(x + first, (size_t)n));
        for (int i = first; i < first + n; i++) {
            const double level = (double)y[i] * 15 / norm;
            assert_true(fabs(level - nearbyint(level)) < 1e-4);
            assert_true(fabs((double)x[i] - (double)y[i]) <= norm / 15 * (1 + 1e-5));
            assert_true(y[i] == 0 || signbit(x[i]) == signbit(y[i]));
        }
    }
    free(x), free(y);
    buffers_free(&b);
}

/* E|C(x) - x|^2 <= min(bucket / 4s^2, sqrt(bucket) / s) |x|^2 */
TEST(test_variance)
{
    for (int bits = 2; bits <= 8; bits++) {
        const double s = (1 << (bits - 1)) - 1;
        char text[64];
        snprintf(text, sizeof text, "qsgd:bits=%d,norm=l2", bits);
        check_variance(text, fmin(512 / (4 * s * s), sqrt(512.0) / s));
    }
}

/* beyond the range of f32 squares, and where there is hardly anything left */
TEST(test_extremes)
{
    enum { N = 512 };
    struct codec_buffers b = buffers_new("qsgd:bits=8,norm=l2", NULL, N);
    float x[N], y[N];
    for (int i = 0; i < N; i++)
        x[i] = i % 2 ? FLT_MAX : -FLT_MAX;
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&b, y);
    for (int i = 0; i < N; i++)
        assert_true(isfinite(y[i]) && (y[i] == 0 || signbit(y[i]) == signbit(x[i])));
    for (int i = 0; i < N; i++)
        x[i] = 0x1p-149f;
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&b, y);
    for (int i = 0; i < N; i++)
        assert_true(fabsf(y[i]) <= 0x1p-100f);
    for (int i = 0; i < N; i++)
        x[i] = 0x1p-75f; /* squares are denormal or 0 */
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    float norm;
    memcpy(&norm, b.code, sizeof norm);
    assert_true(fabsf(norm / (0x1p-75f * sqrtf(N)) - 1) < 1e-6f);
    buffers_free(&b);
}

TEST(test_not_finite)
{
    check_spoils_its_bucket("qsgd", -INFINITY);
}
