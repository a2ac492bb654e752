/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Natural compression and natural dithering, compared with the claims of their paper.
 */
#include "tests/compress/quantise/bucket_checks.h"

static bool is_power_of_two(float v)
{
    int exponent;
    return v != 0 && frexpf(fabsf(v), &exponent) == 0.5f;
}

TEST(test_sizes)
{
    struct codec_buffers n = buffers_new("natural:bucket=512", NULL, 1025);
    assert_int_equal(trib_codec_bound(n.codec, 1025), 3 + 1025);
    assert_int_equal(trib_codec_bound(n.codec, 0), 0);
    struct codec_buffers d = buffers_new("dither:bits=4,bucket=512", NULL, 1025);
    assert_int_equal(trib_codec_bound(d.codec, 1025), 3 * 4 + 513);
    buffers_free(&n), buffers_free(&d);
}

/* Each value becomes one of the powers of two around it; zeros and signs stay. */
TEST(test_neighbours)
{
    enum { N = 5000 };
    static const char *const texts[] = {"natural", "natural:round=nearest"};
    for (int t = 0; t < 2; t++) {
        struct codec_buffers b = buffers_new(texts[t], NULL, N);
        for (int kind = 0; kind < VECTOR_KINDS; kind++) {
            float *x = vector_new((enum vector_kind)kind, 5, N), y[N];
            x[17] = 0.0f;
            encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 3);
            decode(&b, y);
            for (int i = 0; i < N; i++) {
                const float low = x[i] == 0 ? 0 : ldexpf(1.0f, ilogbf(x[i]));
                const float off = fabsf(fabsf(y[i]) - fabsf(x[i]));
                assert_true(fabsf(y[i]) == low || fabsf(y[i]) == 2 * low);
                assert_true(x[i] == 0 || signbit(x[i]) == signbit(y[i]));
                assert_true(t == 0 || off <= fabsf(x[i]) / 3 * (1 + 1e-6f));
            }
            free(x);
        }
        buffers_free(&b);
    }
}

TEST(test_dither_args_pass)
{
    enum { N = 127 };
    static const char *const texts[] = {"natural", "natural:round=nearest"};
    float x[N], y[N];
    for (int t = 0; t < 2; t++) {
        struct codec_buffers b = buffers_new(texts[t], NULL, N);
        for (int top = -126 + N; top <= 127; top += 9) {
            for (int i = 0; i < N; i++)
                x[i] = ldexpf(i % 3 ? 1.0f : -1.0f, top - i);
            x[N - 1] = 0; /* 2^-126 of the largest is the first that is lost */
            encode(&b, x, TRIB_ENCODE_CONTRIBUTION, (uint32_t)top);
            decode(&b, y);
            assert_memory_equal(x, y, sizeof x);
        }
        buffers_free(&b);
    }
}

/* At the ends of float32's range, and beyond the range of the codes. */
TEST(test_extremes)
{
    enum { N = 8 };
    const float x[N] = {FLT_MAX, -FLT_MAX, 0x1.8p127f, 0x1p127f,
                        1.0f,    0x1.8p0f, 0x1p-20f,   0};
    const float tiny[N] = {0x1p-149f, -0x1p-126f, 0x1.8p-127f, 0, 0x1p-130f, 0, 0, 0};
    float y[N];
    struct codec_buffers b = buffers_new("natural", NULL, N);
    for (uint32_t draw = 0; draw < 100; draw++) {
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, draw);
        decode(&b, y);
        assert_true(y[0] == 0x1p127f && y[1] == -0x1p127f && y[2] == 0x1p127f);
        assert_true(y[3] == 0x1p127f);
        for (int i = 4; i < N; i++) /* further than 2^-125 below the largest */
            assert_true(y[i] == 0);
        encode(&b, tiny, TRIB_ENCODE_CONTRIBUTION, draw);
        decode(&b, y);
        assert_true(y[1] == -0x1p-126f);
        for (int i = 0; i < N; i++)
            assert_true(y[i] == 0 || fabsf(y[i]) == 0x1p-126f);
    }
    float wide[N] = {0x1p100f, 0x1p-27f, 0x1p-30f};
    encode(&b, wide, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&b, y);
    assert_true(y[0] == 0x1p100f && y[1] == 0 && y[2] == 0);
    buffers_free(&b);
}

TEST(test_noise_is_of_the_element)
{
    static const size_t cuts[] = {1, 300, 4095, 4096, 5000};
    check_cuts("natural", cuts, 5);
}

/* norm=max: every value is 0 or a power of two of the largest of its bucket, which is
 * itself exact. */
TEST(test_dither_levels)
{
    enum { N = 3000, BUCKET = 128, S = 15 };
    struct codec_buffers b = buffers_new("dither:bits=5,bucket=128", NULL, N);
    float *x = vector_new(VECTOR_NORMAL, 5, N), *y = malloc(N * sizeof *y);
    for (uint32_t draw = 0; draw < 50; draw++) {
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, draw);
        decode(&b, y);
        for (int first = 0; first < N; first += BUCKET) {
            const int n = first + BUCKET < N ? BUCKET : N - first;
            float norm = 0;
            for (int i = first; i < first + n; i++)
                norm = fmaxf(norm, fabsf(x[i]));
            for (int i = first; i < first + n; i++) {
                const float share = fabsf(y[i]) / norm;
                assert_true(share == 0 || (is_power_of_two(share) && share <= 1 &&
                                           share >= ldexpf(1.0f, 1 - S)));
                assert_true(fabsf(x[i]) != norm || y[i] == x[i]);
                assert_true(y[i] == 0 || signbit(x[i]) == signbit(y[i]));
            }
        }
    }
    free(x), free(y);
    buffers_free(&b);
}

/* E|C(x) - x|^2 <= w |x|^2, w = 1/8 + q min(1, q), q = sqrt(bucket) 2^(1-s) */
TEST(test_dither_variance)
{
    static const char *const norms[] = {"l2", "max"};
    for (int t = 0; t < 10; t++) {
        const int bits = 2 + t / 2;
        const double q = ldexp(sqrt(512.0), 2 - (1 << (bits - 1)));
        char text[64];
        snprintf(text, sizeof text, "dither:bits=%d,norm=%s", bits, norms[t % 2]);
        check_variance(text, 0.125 + q * fmin(1, q));
    }
}

TEST(test_not_finite)
{
    check_spoils_its_bucket("natural", NAN);
    check_spoils_its_bucket("dither", -INFINITY);
}
