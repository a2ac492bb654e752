/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks: nothing is lost, nothing that is zero is sent, and the largest are the
 * largest.
 */
#include "tests/compress/vectors.h"

enum { DENSE, GAPS, BITMAP };
enum { N = 4000, BLOCK = 64, BLOCKS = (N + BLOCK - 1) / BLOCK }; /* the last has 32 */

/* Every keep-th block of x stays. */
static void thin(float *x, int keep)
{
    for (int i = 0; i < N; i++)
        x[i] = i / BLOCK % keep == keep - 1 ? x[i] : 0.0f;
}

TEST(test_lossless)
{
    static const float special[] = {NAN,       INFINITY,       -INFINITY,       -0.0f,
                                    0x1p-149f, -0x1.8p-130f, 0x1.fffffep127f};
    struct codec_buffers b = buffers_new("blocks:block=64", NULL, N);
    for (int keep = 1; keep < 80; keep += 3) {
        float *x = vector_new(VECTOR_NORMAL, 3, N), y[N];
        thin(x, keep);
        for (int i = 0; i < 7 && keep < BLOCKS; i++)
            x[(keep - 1) * BLOCK + 7 * i] = special[i];
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
        decode(&b, y);
        assert_memory_equal(x, y, sizeof y);
        encode(&b, x, TRIB_ENCODE_EXACT, 0);
        decode(&b, y);
        assert_memory_equal(x, y, sizeof y);
        free(x);
    }
    buffers_free(&b);
}

/* Header, values, and the blocks' numbers as gaps or a bit each; dense where that is
 * smaller. */
TEST(test_bytes)
{
    struct codec_buffers b = buffers_new("blocks:block=64", NULL, N);
    float *x = vector_new(VECTOR_NORMAL, 3, N);
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    assert_int_equal(b.code[0], DENSE);
    x[BLOCK + 5] = x[BLOCK + 6] = 0; /* zeros within a block are sent */
    assert_int_equal(encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0), 8 + 4 * N);
    thin(x, 2); /* 31 of 63 blocks */
    assert_int_equal(encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0),
                     8 + 4 * 31 * BLOCK + 8);
    assert_int_equal(b.code[0], BITMAP);
    thin(x, 40); /* keeps every 40th; there is no 80th */
    assert_int_equal(encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0), 8 + 4 * BLOCK + 3);
    assert_int_equal(b.code[0], GAPS);
    memset(x, 0, N * sizeof *x);
    x[3] = -0.0f;
    assert_int_equal(encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0), 8);
    x[N - 1] = 0x1p-149f; /* the short block alone */
    assert_int_equal(encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0), 8 + 4 * 32 + 3);
    free(x);
    buffers_free(&b);
}

/* Sums of blocks, quantised or not, are sent as blocks. */
TEST(test_sums)
{
    struct codec_buffers b = buffers_new("blocks:block=64+natural", NULL, N);
    float *x = vector_new(VECTOR_NORMAL, 3, N), sum[N] = {0}, y[N];
    thin(x, 7);
    for (uint32_t rank = 0; rank < 3; rank++) {
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, rank);
        assert_true(b.len < N / 7 + 200);
        assert_ok(trib_codec_decode_add(b.codec, b.code, b.len, 1.0f, sum, N));
    }
    encode(&b, sum, TRIB_ENCODE_EXACT, 0);
    assert_true(b.len < 4 * N / 7 + 200);
    decode(&b, y);
    assert_memory_equal(sum, y, sizeof y);
    free(x);
    buffers_free(&b);
}

/* The k blocks of the largest norms, also where squares leave the range of float32; the
 * error is the energy of the rest, and at most (1 - ratio) of all. */
TEST(test_largest)
{
    static const float scales[] = {1, 0x1p-100f, 0x1p100f};
    struct codec_buffers b = buffers_new("blocks:block=64,ratio=0.2", NULL, N);
    for (int s = 0; s < 3; s++) {
        float *x = vector_new(VECTOR_NORMAL, 3, N), y[N];
        double least_sent = (double)INFINITY, most_left = 0;
        int sent = 0;
        for (int i = 0; i < N; i++)
            x[i] *= scales[s] * (1 + (float)(i / BLOCK * 37 % BLOCKS) / 10);
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
        decode(&b, y);
        for (int i = 0; i < BLOCKS; i++) {
            const size_t n = i + 1 < BLOCKS ? BLOCK : N % BLOCK;
            const double norm = square_sum(x + i * BLOCK, n);
            if (y[i * BLOCK] != 0) {
                assert_memory_equal(x + i * BLOCK, y + i * BLOCK, n * sizeof *x);
                least_sent = fmin(least_sent, norm);
                sent++;
            } else {
                most_left = fmax(most_left, norm);
            }
        }
        assert_int_equal(sent, 13); /* of 63 */
        assert_true(least_sent >= most_left * (1 - 1e-5));
        assert_true(square_distance(x, y, N) <= 0.8 * square_sum(x, N));
        x[30 * BLOCK] = NAN, x[31 * BLOCK] = -INFINITY;
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
        decode(&b, y);
        assert_true(isnan(y[30 * BLOCK]) && y[31 * BLOCK] == -INFINITY);
        free(x);
    }
    buffers_free(&b);
}

/* Numbers and lengths that do not go together. */
TEST(test_hostile)
{
    enum { SMALL = 20 }; /* blocks of 8, 8 and 4 */
    struct codec_buffers b = buffers_new("blocks:block=8", NULL, SMALL);
    float x[SMALL] = {0}, y[SMALL];
    x[17] = 1;
    assert_int_equal(encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0), 8 + 16 + 1);
    decode(&b, y);
    assert_memory_equal(x, y, sizeof y);
    uint8_t code[128], *bits = code + 8 + 16;
    memcpy(code, b.code, b.len);
    for (int bitmap = 0; bitmap < 8; bitmap++) {
        *bits = (uint8_t)bitmap;
        const trib_status_t expected = bitmap == 4 ? TRIB_OK : TRIB_ERR_CODEC;
        assert_status(trib_codec_decode(b.codec, code, b.len, y, SMALL), expected);
        assert_status(trib_codec_decode_add(b.codec, code, b.len, 1, y, SMALL),
                      expected);
    }
    *bits = 8; /* a fourth block */
    assert_status(trib_codec_decode(b.codec, code, b.len, y, SMALL), TRIB_ERR_CODEC);
    x[0] = x[9] = 1, x[17] = 0;
    assert_int_equal(encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0), 8 + 64 + 1);
    memcpy(code, b.code, b.len);
    bits = code + 8 + 64;
    for (int bitmap = 0; bitmap < 8; bitmap++) {
        *bits = (uint8_t)bitmap;
        assert_status(trib_codec_decode(b.codec, code, b.len, y, SMALL),
                      bitmap == 3 ? TRIB_OK : TRIB_ERR_CODEC);
    }
    buffers_free(&b);
}
