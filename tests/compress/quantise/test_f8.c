/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Floats of 8 bits with a scale per bucket.
 */
#include "tests/compress/quantise/bucket_checks.h"

enum { N = 2048 };

TEST(test_sizes)
{
    struct codec_buffers b = buffers_new("f8:bucket=32", NULL, 1025);
    assert_int_equal(trib_codec_bound(b.codec, 1025), 33 + 1025);
    assert_int_equal(trib_codec_bound(b.codec, 0), 0);
    buffers_free(&b);
}

/* For all magnitudes, codes and scale follow the OCP specification. */
TEST(test_wire)
{
    enum { M = 8 };
    const float x[M] = {448.0f, -1.0f, 0x1p-9f, 0x1.1p0f, 0, 240.0f, -0.0f, 2.0f};
    const uint8_t e4m3[1 + M] = {127, 0x7e, 0xb8, 0x01, 0x38, 0, 0x77, 0x80, 0x40};
    /* 448 is 1.75 * 2^8: the scale is 2^-7, the codes are of x 2^7 */
    const uint8_t e5m2[1 + M] = {120, 0x7b, 0xd8, 0x34, 0x58, 0, 0x78, 0x80, 0x5c};
    struct codec_buffers a = buffers_new("f8", NULL, M);
    struct codec_buffers b = buffers_new("f8:format=e5m2", NULL, M);
    encode(&a, x, TRIB_ENCODE_CONTRIBUTION, 0);
    assert_memory_equal(a.code, e4m3, sizeof e4m3);
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    assert_memory_equal(b.code, e5m2, sizeof e5m2);
    buffers_free(&a), buffers_free(&b);
}

/* At every magnitude the relative error is that of the format, and nothing
 * saturates. */
TEST(test_scale)
{
    static const struct {
        const char *text;
        double relative;
    } rows[] = {{"f8", 1.0 / 17},
                {"f8:round=random", 1.0 / 8},
                {"f8:format=e5m2", 1.0 / 9},
                {"f8:format=e5m2,round=random", 1.0 / 4}};
    for (int r = 0; r < 4; r++) {
        struct codec_buffers b = buffers_new(rows[r].text, NULL, N);
        float x[N], y[N];
        for (int exponent = -118; exponent <= 126; exponent += 4) {
            const struct trib_rng rng = {.seed = 3, .stream = (uint32_t)exponent};
            for (uint64_t i = 0; i < N; i++)
                x[i] = ldexpf((1.0f + draw_float(rng, i)) * (i % 2 ? 1.0f : -1.0f),
                              exponent - (int)(i % 14));
            x[5] = ldexpf(0x1.fffffep0f, exponent);
            encode(&b, x, TRIB_ENCODE_CONTRIBUTION, (uint32_t)exponent);
            decode(&b, y);
            for (int i = 0; i < N; i++)
                if (!(fabs((double)y[i] - (double)x[i]) <=
                      rows[r].relative * fabs((double)x[i])))
                    fail_msg("%s: %a became %a", rows[r].text, (double)x[i],
                             (double)y[i]);
        }
        buffers_free(&b);
    }
}

TEST(test_largest)
{
    const float x[8] = {FLT_MAX, -FLT_MAX, 0x1.78p127f, 0x1.cp127f, 0x1p127f};
    const float want[8] = {0x1.cp127f, -0x1.cp127f, 0x1.8p127f, 0x1.cp127f, 0x1p127f};
    float y[8];
    for (int e5m2 = 0; e5m2 < 2; e5m2++) {
        struct codec_buffers b = buffers_new(e5m2 ? "f8:format=e5m2" : "f8", NULL, 8);
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
        decode(&b, y);
        for (int i = 0; i < 8; i++)
            assert_true(y[i] == want[i]);
        buffers_free(&b);
    }
}

/* A value that is representable is unchanged in every rounding mode. */
TEST(test_idempotent)
{
    static const char *const texts[] = {"f8", "f8:round=random,bucket=32",
                                        "f8:format=e5m2,round=random",
                                        "f8:format=e5m2"};
    float y[N], z[N];
    for (int t = 0; t < 4; t++) {
        struct codec_buffers b = buffers_new(texts[t], NULL, N);
        for (int kind = 0; kind < VECTOR_KINDS; kind++) {
            float *x = vector_new((enum vector_kind)kind, 5, N);
            encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 1);
            decode(&b, y);
            encode(&b, y, TRIB_ENCODE_CONTRIBUTION, 2);
            decode(&b, z);
            for (int i = 0; i < N; i++)
                assert_true(y[i] == z[i]);
            free(x);
        }
        buffers_free(&b);
    }
}

/* The distances of the smallest scale, 2^-127, and half of them. */
TEST(test_denormals)
{
    const float x[8] = {0x1p-136f, -0x3p-136f, 0x1p-137f, 0x3p-137f, 0x1p-149f};
    const float want[8] = {0x1p-136f, -0x3p-136f, 0, 0x1p-135f};
    float y[8];
    struct codec_buffers b = buffers_new("f8", NULL, 8);
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    assert_int_equal(b.code[0], 0);
    decode(&b, y);
    assert_memory_equal(y, want, sizeof y);
    const float step[8] = {0x1p-143f, -0x1p-142f};
    struct codec_buffers e = buffers_new("f8:format=e5m2", NULL, 8);
    encode(&e, step, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&e, y);
    assert_memory_equal(y, step, sizeof y);
    buffers_free(&b), buffers_free(&e);
}

/* E|C(x) - x|^2 <= w |x|^2, w = (r - 1)^2 / 4r, and near it at the worst x. */
TEST(test_variance)
{
    enum { DRAWS = 300 };
    static const char *const texts[] = {"f8:round=random",
                                        "f8:round=random,format=e5m2"};
    static const double ratios[] = {1.125, 1.25};
    float x[N], y[N];
    for (int t = 0; t < 2; t++) {
        const double r = ratios[t], w = (r - 1) * (r - 1) / (4 * r);
        struct codec_buffers b = buffers_new(texts[t], NULL, N);
        double error = 0;
        for (int i = 0; i < N; i++) /* between 1 and r, where the bound is reached */
            x[i] = (float)(2 * r / (1 + r));
        for (uint32_t draw = 0; draw < DRAWS; draw++) {
            encode(&b, x, TRIB_ENCODE_CONTRIBUTION, draw);
            decode(&b, y);
            error += square_distance(x, y, N) / DRAWS;
        }
        error /= square_sum(x, N);
        assert_true(error <= 1.02 * w && error >= 0.98 * w);
        buffers_free(&b);
    }
}

/* One bad element spoils only its own bucket. Bytes from an untrusted peer may decode
 * to NaN or Inf. */
TEST(test_not_finite)
{
    float y[N];
    struct codec_buffers b = buffers_new("f8", NULL, N);
    float *x = vector_new(VECTOR_NORMAL, 5, N);
    x[600] = -INFINITY;
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    assert_int_equal(b.code[1], 255);
    decode(&b, y);
    for (int i = 0; i < N; i++)
        assert_int_equal(isnan(y[i]) != 0, i / 512 == 1);
    memset(b.code, 0x7f, b.len);
    decode(&b, y);
    assert_true(isnan(y[0]) && isnan(y[N - 1]));
    free(x);
    buffers_free(&b);
}

TEST(test_noise_is_of_the_element)
{
    static const size_t cuts[] = {512, 1024, 4096, 5120};
    static const char *const texts[] = {"f8:round=random", "f16:round=random",
                                        "bf16:round=random"};
    for (int t = 0; t < 3; t++)
        check_cuts(texts[t], cuts, 4);
}
