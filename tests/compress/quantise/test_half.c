/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/compress/vectors.h"

TEST(test_sizes)
{
    struct codec_buffers f16 = buffers_new("f16", NULL, 1001);
    struct codec_buffers f32 = buffers_new("none", NULL, 1001);
    assert_int_equal(trib_codec_bound(f16.codec, 1001), 2002);
    assert_int_equal(trib_codec_bound(f32.codec, 1001), 4004);
    assert_int_equal(trib_codec_scratch(f16.codec, 1001), 0);
    buffers_free(&f16), buffers_free(&f32);
}

/* the wire is the IEEE format itself */
TEST(test_wire)
{
    const float x[] = {1.0f, -2.0f, 65504.0f, 1e6f, 0x1p-24f, NAN};
    const uint16_t f16[] = {0x3c00, 0xc000, 0x7bff, 0x7c00, 0x0001};
    const uint16_t bf16[] = {0x3f80, 0xc000, 0x4780, 0x4974, 0x3380};
    struct codec_buffers a = buffers_new("f16", NULL, 6),
                         b = buffers_new("bf16", NULL, 6);
    encode(&a, x, TRIB_ENCODE_CONTRIBUTION, 0);
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    assert_memory_equal(a.code, f16, sizeof f16);
    assert_memory_equal(b.code, bf16, sizeof bf16);
    float y[6];
    decode(&a, y);
    assert_true(isnan(y[5]) && isinf(y[3]));
    decode(&b, y);
    assert_true(isnan(y[5]));
    buffers_free(&a), buffers_free(&b);
}

static void check_error(const char *text, float relative)
{
    enum { N = 10007 };
    struct codec_buffers b = buffers_new(text, NULL, N);
    float *x = vector_new(VECTOR_NORMAL, 8, N), *y = malloc(N * sizeof *y);
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&b, y);
    for (int i = 0; i < N; i++)
        assert_true(fabsf(x[i] - y[i]) <= relative * fmaxf(fabsf(x[i]), 0x1p-14f));
    /* representable values are unchanged */
    encode(&b, y, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&b, x);
    assert_memory_equal(x, y, N * sizeof *x);
    free(x), free(y);
    buffers_free(&b);
}

TEST(test_error)
{
    check_error("none", 0.0f);
    check_error("f16", 0x1p-11f);
    check_error("bf16", 0x1p-8f);
}

/* E|C(x) - x|^2 <= 2^-22 |x|^2 and 2^-16 |x|^2, reached between a power of two and the
 * next */
TEST(test_variance)
{
    enum { N = 4096, DRAWS = 100 };
    static const char *const texts[] = {"f16:round=random", "bf16:round=random"};
    static const float places[] = {1 + 0x1p-11f, 1 + 0x1p-8f};
    static const double bounds[] = {0x1p-22, 0x1p-16};
    float x[N], y[N];
    for (int t = 0; t < 2; t++) {
        struct codec_buffers b = buffers_new(texts[t], NULL, N);
        double error = 0;
        for (int i = 0; i < N; i++)
            x[i] = places[t];
        for (uint32_t draw = 0; draw < DRAWS; draw++) {
            encode(&b, x, TRIB_ENCODE_CONTRIBUTION, draw);
            decode(&b, y);
            error += square_distance(x, y, N) / DRAWS;
        }
        error /= square_sum(x, N);
        assert_true(error <= bounds[t] && error > 0.95 * bounds[t]);
        buffers_free(&b);
    }
}

/* An f16 between 0 and its least, too, has the right mean. */
TEST(test_random_denormals)
{
    enum { N = 40000 };
    static float x[N], y[N];
    double sum = 0;
    struct codec_buffers b = buffers_new("f16:round=random", NULL, N);
    for (int i = 0; i < N; i++)
        x[i] = 0x1p-26f; /* a quarter of the least */
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&b, y);
    for (int i = 0; i < N; i++) {
        assert_true(y[i] == 0 || y[i] == 0x1p-24f);
        sum += ldexp((double)y[i], 24) / N;
    }
    assert_true(fabs(sum - 0.25) < 5 * sqrt(0.25 * 0.75 / N));
    buffers_free(&b);
}

TEST(test_length)
{
    struct codec_buffers b = buffers_new("bf16", NULL, 4);
    float y[4];
    memset(b.code, 0, 8);
    assert_status(trib_codec_decode(b.codec, b.code, 7, y, 4), TRIB_ERR_CODEC);
    assert_status(trib_codec_decode_add(b.codec, b.code, 6, 1.0f, y, 4),
                  TRIB_ERR_CODEC);
    assert_status(trib_codec_decode(b.codec, b.code, 8, y, 4), TRIB_OK);
    buffers_free(&b);
}
