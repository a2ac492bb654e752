/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * AdaComp compared with a second implementation of its equations and with the claims of
 * its paper.
 */
#include "tests/compress/vectors.h"

enum { N = 1000 };

/* One step of the paper on a block, as codec.h does it in float32; returns how many are
 * sent. */
static int step_of_paper(const float *dw, float *r, float *sent_out, int bin,
                         float factor)
{
    double scale = 0;
    int sent = 0, bins = 0;
    float largest[N];
    for (int b = 0; b < N; b += bin, bins++) {
        largest[bins] = 0;
        for (int i = b; i < N && i < b + bin; i++) {
            r[i] += dw[i]; /* G */
            largest[bins] = fmaxf(largest[bins], fabsf(r[i]));
        }
        scale += (double)largest[bins];
    }
    const float level = (float)(scale / bins);
    for (int i = 0; i < N; i++) {
        volatile const float ahead = (factor - 1) * dw[i]; /* rounded by itself */
        const float h = r[i] + ahead;
        const bool chosen = r[i] != 0 && fabsf(h) >= largest[i / bin];
        sent_out[i] = chosen ? copysignf(level, r[i]) : 0;
        r[i] -= sent_out[i];
        sent += chosen;
    }
    return sent;
}

static void check_paper(int bin, float factor, enum vector_kind kind)
{
    char text[64];
    float r[N] = {0}, residual[N] = {0}, expected[N], y[N];
    snprintf(text, sizeof text, "adacomp:bin=%d,factor=%g", bin, (double)factor);
    struct codec_buffers b = buffers_new(text, NULL, N);
    for (uint32_t step = 0; step < 12; step++) {
        float *x = vector_new(kind, step / 3, N); /* steps with and against the
                                                   * residual */
        for (int i = 0; i < N; i++)
            x[i] *= step % 4 == 3 ? -0.5f : 1;
        const struct trib_encode in = {.x = x, .n = N, .scratch = b.scratch};
        const int sent = step_of_paper(x, r, expected, bin, factor);
        b.len = trib_codec_encode_ef(b.codec, &in, residual, b.code);
        decode(&b, y);
        for (int i = 0; i < N; i++)
            assert_true(y[i] == expected[i] && residual[i] == r[i]);
        assert_int_equal(b.code[4] | b.code[5] << 8, sent);
        free(x);
    }
    buffers_free(&b);
}

TEST(test_paper)
{
    static const int bins[] = {1, 7, 50, 64, 500, 16384};
    static const float factors[] = {1, 1.5f, 2, 3};
    for (int b = 0; b < 6; b++)
        for (int f = 0; f < 4; f++)
            for (int kind = 0; kind < VECTOR_HUGE; kind++)
                check_paper(bins[b], factors[f], (enum vector_kind)kind);
}

/* Header, scale, a bit each, and positions: 10 bits each in bins below 256. */
TEST(test_bytes)
{
    enum { LONG = 64000 };
    struct codec_buffers b = buffers_new("adacomp:factor=1.25", NULL, LONG);
    float *x = vector_new(VECTOR_NORMAL, 7, LONG), *y = malloc(LONG * sizeof *y);
    size_t sent = 0;
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&b, y);
    for (int bin = 0; bin < LONG / 64; bin++) {
        int in_bin = 0;
        for (int i = 0; i < 64; i++)
            in_bin += y[64 * bin + i] != 0;
        assert_true(in_bin >= 1);
        sent += (size_t)in_bin;
    }
    /* an index needs about log2(e LONG / sent) bits; bins spread the indices evenly */
    const double bits = log2(2.7183 * LONG / (double)sent) / 8 * (double)sent;
    assert_true((double)b.len >= 12 + (double)(sent + 7) / 8 + 0.7 * bits);
    assert_true((double)b.len <= 12 + (double)(sent + 7) / 8 + 1.05 * bits);
    free(x), free(y);
    buffers_free(&b);
}

/* The selection of a bin depends on that bin alone: only the scale depends on the
 * others. */
TEST(test_bins_alone)
{
    enum { BIN = 50 };
    struct codec_buffers b = buffers_new("adacomp:bin=50", NULL, N);
    float *x = vector_new(VECTOR_NORMAL, 3, N), y[N], z[N];
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&b, y);
    for (int i = 0; i < N; i++)
        x[i] *= i / BIN == 7 ? 1 : (float)(i / BIN) * 100;
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&b, z);
    for (int i = 7 * BIN; i < 8 * BIN; i++)
        assert_int_equal(y[i] != 0, z[i] != 0);
    for (int i = 0; i < BIN; i++)
        assert_true(z[i] == 0); /* all zero now */
    assert_true(z[7 * BIN] == 0 || fabsf(z[7 * BIN]) > fabsf(y[7 * BIN]));
    free(x);
    buffers_free(&b);
}

/* Nothing is 8 bytes; an element that dW cancels is not sent. */
TEST(test_zero)
{
    struct codec_buffers b = buffers_new("adacomp:bin=8", NULL, N);
    float x[N] = {0}, residual[N] = {0}, y[N];
    struct trib_encode in = {.x = x, .n = N, .scratch = b.scratch};
    assert_int_equal(trib_codec_encode_ef(b.codec, &in, residual, b.code), 8);
    residual[3] = 4, residual[4] = 1;
    x[3] = -4;
    b.len = trib_codec_encode_ef(b.codec, &in, residual, b.code);
    decode(&b, y);
    assert_true(y[3] == 0 && y[4] == 1.0f / 125 && residual[4] == 1 - 1.0f / 125);
    assert_true(square_sum(residual, N) == square_sum(residual + 4, 1));
    buffers_free(&b);
}

/* Means of the largest floats are floats; a NaN is seen. */
TEST(test_huge)
{
    struct codec_buffers b = buffers_new("adacomp:bin=10", NULL, N);
    float x[N], y[N];
    for (int i = 0; i < N; i++)
        x[i] = i % 2 ? FLT_MAX : -FLT_MAX;
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&b, y);
    assert_memory_equal(x, y, sizeof y); /* the mean of the largest is the largest */
    x[500] = NAN;
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&b, y);
    for (int i = 0; i < N; i++)
        assert_true(isnan(y[i]) || (i / 10 == 50 && i != 500 && y[i] == 0));
    buffers_free(&b);
}
