/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/compress/vectors.h"

enum { N = 5000 };

/* Exactly what reaches the threshold, the threshold itself among it; all where that is
 * smaller. */
TEST(test_values)
{
    for (int kind = 0; kind < VECTOR_KINDS; kind++) {
        struct codec_buffers b = buffers_new("threshold:at=0.25", NULL, N);
        float *x = vector_new((enum vector_kind)kind, 12, N), y[N];
        x[7] = 0.25f, x[8] = -0.25f, x[9] = nextafterf(0.25f, 0), x[10] = -0.0f;
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
        decode(&b, y);
        const bool dense = b.code[0] == 0;
        assert_int_equal(dense, kind == VECTOR_CONSTANT || kind == VECTOR_ALTERNATING ||
                                    kind == VECTOR_HUGE);
        for (int i = 0; i < N; i++)
            assert_true(y[i] == (dense || fabsf(x[i]) >= 0.25f ? x[i] : 0.0f));
        free(x);
        buffers_free(&b);
    }
}

/* at=0 loses nothing: denormals are sent, zeros need not be; nothing to send is 8
 * bytes */
TEST(test_zero)
{
    struct codec_buffers b = buffers_new("threshold:at=0", NULL, N);
    float *x = calloc(N, sizeof *x), y[N];
    x[3] = 0x1p-149f, x[N - 1] = -0x1.fffffep127f;
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&b, y);
    assert_memory_equal(x, y, N * sizeof *x);
    memset(x, 0, N * sizeof *x);
    assert_int_equal(encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0), 8);
    free(x);
    buffers_free(&b);
}

/* The same elements, however the vector is cut. */
TEST(test_cuts)
{
    struct codec_buffers whole = buffers_new("threshold:at=1", NULL, N);
    float *x = vector_new(VECTOR_NORMAL, 3, N), y[N], z[N];
    encode(&whole, x, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&whole, y);
    for (size_t at = 0, n = 1; at < N; at += n, n = n * 3 < N - at ? n * 3 : N - at) {
        struct codec_buffers part = buffers_new("threshold:at=1", NULL, n);
        encode(&part, x + at, TRIB_ENCODE_CONTRIBUTION, 0);
        decode(&part, z + at);
        buffers_free(&part);
    }
    assert_memory_equal(y, z, sizeof y);
    free(x);
    buffers_free(&whole);
}

/* An element that grows slowly is sent as soon as its sum reaches the threshold. */
TEST(test_feedback)
{
    struct codec_buffers b = buffers_new("threshold:at=1", NULL, 2);
    const float x[2] = {0.25f, -0.375f};
    float residual[2] = {0}, y[2];
    for (int step = 1; step <= 12; step++) {
        const struct trib_encode in = {.x = x, .n = 2, .scratch = b.scratch};
        b.len = trib_codec_encode_ef(b.codec, &in, residual, b.code);
        decode(&b, y);
        assert_true(y[0] == (step % 4 ? 0.0f : 1.0f));
        assert_true(y[1] == (step % 3 ? 0.0f : -1.125f));
    }
    buffers_free(&b);
}
