/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/compress/vectors.h"

enum { DENSE, GAPS, BITMAP };

static void check_kind(const char *text, size_t n, enum trib_encode_mode mode, int kind)
{
    struct codec_buffers b = buffers_new(text, NULL, n);
    float *x = vector_new(VECTOR_NORMAL, 3, n);
    encode(&b, x, mode, 0);
    assert_int_equal(b.code[0], kind);
    assert_int_equal(b.code[1], mode == TRIB_ENCODE_EXACT);
    free(x);
    buffers_free(&b);
}

/* the smallest of the three */
TEST(test_kinds)
{
    check_kind("topk:ratio=0.01", 10000, TRIB_ENCODE_CONTRIBUTION, GAPS);
    check_kind("topk:ratio=0.1", 10000, TRIB_ENCODE_CONTRIBUTION, GAPS);
    check_kind("topk:ratio=0.5", 10000, TRIB_ENCODE_CONTRIBUTION, BITMAP);
    check_kind("topk:ratio=0.99", 10000, TRIB_ENCODE_CONTRIBUTION, DENSE);
    check_kind("topk:ratio=0.01", 10000, TRIB_ENCODE_EXACT, DENSE);
    check_kind("topk:ratio=0.01+f16", 10000, TRIB_ENCODE_EXACT, DENSE);
    check_kind("topk:ratio=0.94+f16", 10000, TRIB_ENCODE_CONTRIBUTION, DENSE);
    check_kind("topk:ratio=0.93+f16", 10000, TRIB_ENCODE_CONTRIBUTION, BITMAP);
}

/* drawn at the top of sparse_block.c */
TEST(test_layout)
{
    float x[20] = {0};
    x[3] = 1.0f, x[17] = -2.0f;
    struct codec_buffers b = buffers_new("topk:k=2", NULL, 20);
    const uint8_t gaps[] = {1,    0,    0, 0, 2, 0,    0, 0,    0, 0,
                            0x80, 0x3f, 0, 0, 0, 0xc0, 3, 0x2b, 5};
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    assert_int_equal(b.len, sizeof gaps);
    assert_memory_equal(b.code, gaps, sizeof gaps);
    buffers_free(&b);
    b = buffers_new("topk:k=2+f16", NULL, 20);
    const uint8_t halves[] = {1, 0, 0, 0, 2, 0, 0, 0, 0, 0x3c, 0, 0xc0, 3, 0x2b, 5};
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    assert_memory_equal(b.code, halves, sizeof halves);
    buffers_free(&b);
}

/* A result: the elements that are not 0, and no others, as the codec quantises; or as
 * many as a contribution has; or, by default, the bytes of EXACT. */
TEST(test_results)
{
    enum { N = 10000, EVERY = 40 };
    float *x = calloc(N, sizeof *x), *y = malloc(N * sizeof *y);
    static const struct {
        const char *text;
        size_t m, values; /* elements received, bytes of their values */
    } rows[] = {
        {"topk:ratio=0.01", N / EVERY, 4 * N / EVERY},
        {"topk:ratio=0.01,result=requantised+bf16", N / EVERY, 2 * N / EVERY},
        {"topk:ratio=0.01,result=requantised+natural", N / EVERY, N / EVERY + 1},
        {"topk:ratio=0.01,result=selected", N / 100, 4 * N / 100},
        {"topk:ratio=0.01,result=selected+bf16", N / 100, 2 * N / 100},
        {"adacomp:result=requantised", N / EVERY, 4 + (N / EVERY + 7) / 8},
    };
    for (size_t i = 0; i < N; i += EVERY)
        x[i] = (i / EVERY % 2 ? 1.0f : -1.0f) * (1 + (float)i / N);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct codec_buffers b = buffers_new(rows[k].text, NULL, N);
        size_t came = 0;
        encode(&b, x, TRIB_ENCODE_RESULT, 3);
        assert_true(b.len > 8 + rows[k].values);
        assert_true(b.len <= 8 + rows[k].values + rows[k].m + rows[k].m / 4 + 1);
        assert_ok(trib_codec_decode(b.codec, b.code, b.len, y, N));
        for (size_t i = 0; i < N; i++) {
            came += y[i] != 0;
            assert_true(y[i] == 0 || (x[i] < 0) == (y[i] < 0));
        }
        assert_int_equal(came, rows[k].m);
        buffers_free(&b);
    }
    free(x), free(y);
}

/* The encoded selections of `ranks` ranks from n elements, and their encoded sum. */
static void check_bound(const char *text, size_t n, int ranks)
{
    struct codec_buffers b = buffers_new(text, NULL, n);
    const size_t one = trib_codec_selected_bound(b.codec, n, 1),
                 all = trib_codec_selected_bound(b.codec, n, ranks);
    float *sum = calloc(n, sizeof *sum);
    for (int r = 0; r < ranks; r++) {
        float *x =
            vector_new(r % 2 ? VECTOR_NORMAL : VECTOR_POWER_LAW, 3 + (uint64_t)r, n);
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
        assert_true(b.len <= one);
        assert_ok(trib_codec_decode_add(b.codec, b.code, b.len, 1, sum, n));
        free(x);
    }
    encode(&b, sum, TRIB_ENCODE_EXACT, 0);
    assert_true(b.len <= all);
    encode(&b, sum, TRIB_ENCODE_RESULT, 0);
    assert_true(b.len <= all && one <= all && all <= trib_codec_bound(b.codec, n));
    free(sum);
    buffers_free(&b);
}

TEST(test_selected_bound)
{
    static const char *const texts[] = {
        "topk:ratio=0.001",   "topk:ratio=0.02+qsgd:bits=2",
        "topk:ratio=1",       "topk:ratio=0.01,result=requantised+natural",
        "randomk:ratio=0.01", "blocks:ratio=0.05",
        "adacomp:bin=50",     "dgc:ratio=0.001"};
    const size_t lengths[] = {0, 1, 64, 1000, TRIB_SELECTED_PIECE};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            check_bound(texts[k], lengths[i], 3);
    struct codec_buffers b = buffers_new("topk:ratio=0.001", NULL, 1000);
    assert_true(trib_codec_selected_bound(b.codec, 100000, 4) < 400 * 8 + 32);
    assert_int_equal(trib_codec_selected_bound(b.codec, 200000, 1),
                     trib_codec_bound(b.codec, 200000));
    buffers_free(&b);
    b = buffers_new("dgc:ratio=0.001", NULL, 1000); /* at most as many as topk */
    assert_true(trib_codec_selected_bound(b.codec, 100000, 4) < 400 * 8 + 32);
    buffers_free(&b);
}

static void expect(struct codec_buffers *b, const uint8_t *code, size_t len,
                   trib_status_t status)
{
    float *y = malloc(b->n * sizeof *y);
    uint8_t *copy = malloc(len);
    memcpy(copy, code, len);
    assert_status(trib_codec_decode(b->codec, copy, len, y, b->n), status);
    free(copy), free(y);
}

TEST(test_wrong_headers)
{
    struct codec_buffers b = buffers_new("topk:k=2", NULL, 20);
    const uint8_t good[] = {1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0x80, 0x3f, 4, 3, 2};
    uint8_t bad[sizeof good];
    expect(&b, good, sizeof good, TRIB_OK);
    static const struct {
        size_t at;
        uint8_t value;
    } changes[] = {
        {0, 3},  {0, 0},    {0, 2},   {1, 2},  {2, 1},   {3, 1},
        {4, 21}, {7, 0x80}, {12, 32}, {13, 4}, {13, 19}, {14, 4},
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        memcpy(bad, good, sizeof good);
        bad[changes[i].at] = changes[i].value;
        expect(&b, bad, sizeof bad, TRIB_ERR_CODEC);
    }
    buffers_free(&b);
    b = buffers_new("topk:k=2", NULL, 0);
    expect(&b, good, 0, TRIB_OK);
    expect(&b, good, 8, TRIB_ERR_CODEC);
    buffers_free(&b);
}

/* decode overwrites old values; decode_add touches only elements that were sent. */
TEST(test_overwrite_and_add)
{
    float x[20] = {0}, y[20], z[20];
    x[3] = 1.0f, x[17] = -2.0f;
    struct codec_buffers b = buffers_new("topk:k=2", NULL, 20);
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    for (int i = 0; i < 20; i++)
        y[i] = z[i] = 7.0f;
    decode(&b, y);
    assert_memory_equal(x, y, sizeof x);
    assert_ok(trib_codec_decode_add(b.codec, b.code, b.len, 0.5f, z, 20));
    for (int i = 0; i < 20; i++)
        assert_true(z[i] == 7.0f + 0.5f * x[i]);
    buffers_free(&b);
}
