/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Codes of variable length: they decode to the same values as codes of fixed length,
 * and need at most one byte more.
 */
#include "tests/compress/vectors.h"

#include "compress/pack/varlen.h"

static const char *const quantisers[] = {
    "qsgd",
    "qsgd:bits=2,bucket=64",
    "qsgd:bits=4,norm=l2",
    "qsgd:bits=8,bucket=1000",
    "terngrad",
    "terngrad:bucket=8,clip=1000",
};
static const char *const exponents[] = {"natural", "natural:round=nearest,bucket=8",
                                        "dither",  "dither:base=1.5,bits=5",
                                        "f8",      "f8:format=e5m2,bucket=32"};

static const size_t lengths[] = {0,    1,    2,     7,     9,     63,   257,
                                 1025, 4099, 16383, 16384, 16385, 40001};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static void with_pack(char text[96], const char *quantiser, const char *pack)
{
    snprintf(text, 96, "%s%cpack=%s", quantiser, strchr(quantiser, ':') ? ',' : ':',
             pack);
}

static void check_same(const char *quantiser, const char *pack)
{
    char text[96];
    with_pack(text, quantiser, pack);
    for (int l = 0; l < LENGTHS; l++) {
        const size_t n = lengths[l];
        struct codec_buffers a = buffers_new(quantiser, NULL, n);
        struct codec_buffers b = buffers_new(text, NULL, n);
        float *y = malloc(n * sizeof *y), *z = malloc(n * sizeof *z);
        assert_int_equal(trib_codec_bound(b.codec, n),
                         n ? trib_codec_bound(a.codec, n) + 1 : 0);
        for (int kind = 0; kind < VECTOR_KINDS; kind++) {
            float *x = vector_new((enum vector_kind)kind, 5, n);
            encode(&a, x, TRIB_ENCODE_CONTRIBUTION, 9);
            encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 9);
            assert_true(b.len <= a.len + 1);
            decode(&a, y), decode(&b, z);
            for (size_t i = 0; i < n; i++)
                assert_true(y[i] == z[i]);
            free(x);
        }
        free(y), free(z);
        buffers_free(&a), buffers_free(&b);
    }
}

TEST(test_same_values)
{
    for (size_t i = 0; i < sizeof quantisers / sizeof *quantisers; i++) {
        check_same(quantisers[i], "omega");
        check_same(quantisers[i], "entropy");
    }
    for (size_t i = 0; i < sizeof exponents / sizeof *exponents; i++)
        check_same(exponents[i], "entropy");
}

/* The right kind is chosen, and it pays. */
TEST(test_choice)
{
    enum { N = 20000 };
    static const struct {
        const char *text;
        enum vector_kind vector;
        enum trib_codes_kind kind;
        double most; /* bits for an element, heads included */
    } rows[] = {
        {"qsgd:bits=4,norm=l2,pack=omega", VECTOR_NORMAL, TRIB_CODES_GAPS, 1.6},
        {"qsgd:bits=8,norm=l2,pack=omega", VECTOR_NORMAL, TRIB_CODES_DENSE, 6.2},
        {"qsgd:bits=4,pack=omega", VECTOR_ONE_HOT, TRIB_CODES_GAPS, 0.07},
        {"qsgd:bits=4,pack=omega", VECTOR_CONSTANT, TRIB_CODES_BITS, 4.1},
        {"qsgd:bits=4,pack=entropy", VECTOR_NORMAL, TRIB_CODES_GROUPS, 3.3},
        {"qsgd:bits=2,pack=entropy", VECTOR_NORMAL, TRIB_CODES_GROUPS, 1.2},
        {"terngrad:pack=entropy", VECTOR_ALTERNATING, TRIB_CODES_GROUPS, 1.1},
        {"natural:pack=entropy", VECTOR_NORMAL, TRIB_CODES_GROUPS, 3.8},
        {"f8:pack=entropy", VECTOR_NORMAL, TRIB_CODES_GROUPS, 6.9},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct codec_buffers b = buffers_new(rows[i].text, NULL, N);
        float *x = vector_new(rows[i].vector, 5, N);
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
        if (b.code[0] != rows[i].kind || (double)b.len * 8 > rows[i].most * N)
            fail_msg("%s: kind %d, %.3f bits", rows[i].text, b.code[0],
                     (double)b.len * 8 / N);
        free(x);
        buffers_free(&b);
    }
}

/* The streams of section 3.2 of the paper, bit by bit. */
TEST(test_wire)
{
    enum { N = 16 };
    const float x[N] = {0, 0, 1, 0, 0, 0, -1};
    const float dense[N] = {-1, 0, 2 / 3.0f, 0, 2 / 3.0f, 0, 2 / 3.0f, 0, 2 / 3.0f};
    /* gaps 3, 4 and to the end 10; level 1 is "0" after "0" or "1" for the sign:
     * 110 0 0 101000 1 0 1110100 */
    const uint8_t gaps_code[] = {TRIB_CODES_GAPS, 0, 0, 0x80, 0x3f, 0xc5, 0x17, 0x40};
    /* of 3 levels: 101000 1 0 110 0 0 110 0 0 110 0 0 110 0 0000000 */
    const uint8_t dense_code[] = {
        TRIB_CODES_DENSE, 0, 0, 0x80, 0x3f, 0xa2, 0xc6, 0x31, 0x80, 0};
    struct codec_buffers a = buffers_new("qsgd:bits=2,bucket=16,pack=omega", NULL, N);
    encode(&a, x, TRIB_ENCODE_CONTRIBUTION, 0);
    assert_int_equal(a.len, sizeof gaps_code);
    assert_memory_equal(a.code, gaps_code, sizeof gaps_code);
    struct codec_buffers b = buffers_new("qsgd:bits=3,bucket=16,pack=omega", NULL, N);
    encode(&b, dense, TRIB_ENCODE_CONTRIBUTION, 0);
    assert_int_equal(b.len, sizeof dense_code);
    assert_memory_equal(b.code, dense_code, sizeof dense_code);
    buffers_free(&a), buffers_free(&b);
}

TEST(test_not_finite)
{
    enum { N = 1536 };
    static const char *const texts[] = {"qsgd:pack=omega", "natural:pack=entropy",
                                        "f8:pack=entropy"};
    float y[N];
    for (int t = 0; t < 3; t++) {
        struct codec_buffers b = buffers_new(texts[t], NULL, N);
        float *x = vector_new(VECTOR_NORMAL, 5, N);
        x[600] = NAN;
        x[1100] = FLT_MAX;
        x[1200] = 0x1p-149f;
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
        decode(&b, y);
        for (int i = 0; i < N; i++)
            assert_int_equal(isnan(y[i]) != 0, i / 512 == 1);
        free(x);
        buffers_free(&b);
    }
}

/* Any bytes after a valid header, of every kind: decode quickly returns a status. */
TEST(test_strangers)
{
    enum { N = 20000, TIMES = 300 };
    static const char *const texts[] = {"qsgd:pack=omega",
                                        "terngrad:bucket=8,pack=entropy"};
    float *y = calloc(N, sizeof *y);
    for (int t = 0; t < 2; t++) {
        struct codec_buffers b = buffers_new(texts[t], NULL, N);
        float *x = vector_new(VECTOR_NORMAL, 5, N);
        const size_t whole = encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
        for (uint64_t i = 0; i < TIMES; i++) {
            const struct trib_rng rng = {.seed = 1, .stream = (uint32_t)t};
            const size_t len = i % 3 ? whole : draw_u32(rng, i) % whole;
            uint8_t *code = malloc(len + 1);
            memcpy(code, b.code, len);
            for (uint64_t j = 0; len && j < 1 + i % 20; j++) {
                const struct trib_rng at = {.seed = i, .stream = 7};
                code[draw_u32(at, 2 * j) % len] =
                    (uint8_t)draw_u32(at, 2 * j + 1);
            }
            code[0] = (uint8_t)(i % 5);
            trib_codec_decode(b.codec, code, len, y, N);
            trib_codec_decode_add(b.codec, code, len, 1.0f, y, N);
            free(code);
        }
        b.code[0] = TRIB_CODES_KINDS;
        assert_status(trib_codec_decode(b.codec, b.code, whole, y, N), TRIB_ERR_CODEC);
        free(x);
        buffers_free(&b);
    }
    free(y);
}

/* Gaps beyond the end, levels out of range, unterminated streams; and similar valid
 * ones. */
TEST(test_refused)
{
    static const struct {
        trib_status_t status;
        size_t len; /* of the codes */
        uint8_t kind;
        uint8_t codes[4];
    } words[] = {
        {TRIB_OK, 2, TRIB_CODES_GAPS, {0xa4, 0x40}}, /* 10 100 10001 0: a gap of 17 */
        {TRIB_ERR_CODEC, 2, TRIB_CODES_GAPS, {0xa4, 0x80}}, /* of 18 */
        {TRIB_ERR_CODEC, 1, TRIB_CODES_GAPS, {0x00}}, /* 0 0 0, 0 0 0, 0 0: no end */
        {TRIB_OK, 2, TRIB_CODES_GAPS, {0x1f, 0x80}}, /* 0 0 0, 1111110 0 0, 0 */
        {TRIB_ERR_CODEC, 2, TRIB_CODES_GAPS, {0x27, 0xe0}}, /* 0 0 100: level 2 of 1 */
        {TRIB_OK, 3, TRIB_CODES_DENSE, {0x80, 0x00, 0x00}}, /* 100 0, then 0s */
        {TRIB_ERR_CODEC, 3, TRIB_CODES_DENSE, {0xc0, 0x00, 0x00}}, /* 110: level 2 of
                                                                    * 1 */
        {TRIB_ERR_CODEC, 1, TRIB_CODES_DENSE, {0x00}}, /* 8 of 16 */
        {TRIB_OK, 2, TRIB_CODES_DENSE, {0x00, 0x00}},
        {TRIB_OK, 4, TRIB_CODES_BITS, {0x55, 0x55, 0x55, 0x55}},
        {TRIB_ERR_CODEC, 3, TRIB_CODES_BITS, {0x55, 0x55, 0x55}},
        {TRIB_ERR_CODEC, 1, TRIB_CODES_GROUPS, {0}},
        {TRIB_ERR_CODEC, 4, TRIB_CODES_GROUPS, {0xff, 0xff, 0x10}},
    };
    float y[16];
    struct codec_buffers b = buffers_new("qsgd:bits=2,bucket=16,pack=omega", NULL, 16);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        uint8_t word[9] = {words[i].kind, 0, 0, 0x80, 0x3f};
        memcpy(word + 5, words[i].codes, words[i].len);
        const trib_status_t status =
            trib_codec_decode(b.codec, word, 5 + words[i].len, y, 16);
        if (status != words[i].status)
            fail_msg("word %zu: %d", i, status);
    }
    buffers_free(&b);
}

/* A library's stream of any other kind than ours. */
TEST(test_other_streams)
{
    enum { N = 5000 };
    struct codec_buffers b = buffers_new("qsgd:pack=entropy", NULL, N);
    float *x = vector_new(VECTOR_NORMAL, 5, N), y[N];
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    assert_int_equal(b.code[0], TRIB_CODES_GROUPS);
    uint8_t *kind = &b.code[1 + 4 * 10 + 2]; /* after 10 headers and a length */
    const uint8_t ours = *kind;
    for (int i = 0; i < 256; i++) {
        *kind = (uint8_t)i;
        assert_status(trib_codec_decode(b.codec, b.code, b.len, y, N),
                      i == ours ? TRIB_OK : TRIB_ERR_CODEC);
    }
    free(x);
    buffers_free(&b);
}

/* Groups that rANS shortens, next to one that it does not. */
TEST(test_mixed_groups)
{
    enum { N = 2 * TRIB_GROUP + 3001 };
    const struct trib_rng rng = {.seed = 3};
    float *x = vector_new(VECTOR_NORMAL, 5, N), *y = malloc(N * sizeof *y);
    float *z = malloc(N * sizeof *z);
    for (uint64_t i = 0; i < TRIB_GROUP; i++)
        x[TRIB_GROUP + i] = 2 * draw_float(rng, i) - 1;
    struct codec_buffers a = buffers_new("qsgd:bits=8", NULL, N);
    struct codec_buffers b = buffers_new("qsgd:bits=8,pack=entropy", NULL, N);
    encode(&a, x, TRIB_ENCODE_CONTRIBUTION, 0),
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    assert_int_equal(b.code[0], TRIB_CODES_GROUPS);
    assert_true(b.len < a.len);
    const uint8_t *group = b.code + 1 + 4 * (N / 512 + 1);
    group += 2 + (group[0] | group[1] << 8);
    assert_int_equal(group[0] | group[1], 0); /* the second has its fixed width */
    decode(&a, y), decode(&b, z);
    for (int i = 0; i < N; i++)
        assert_true(y[i] == z[i]);
    free(x), free(y), free(z);
    buffers_free(&a), buffers_free(&b);
}
