/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encoded vectors: every codec, odd lengths and pieces of any length, compared with an
 * encoding chunk by chunk. Damaged, overlong or truncated input is rejected.
 */
#include "compress/vectors/vector_words.h"

#include "base/error.h"
#include "tests/harness/rng_draw.h"
#include "tests/harness/tribtest.h"

enum { LONGEST = 200003, CHUNK = 65536 };

static const size_t counts[] = {1, 7, 513, CHUNK, CHUNK + 1, LONGEST};
static const size_t pieces[] = {1, 4093, SIZE_MAX};

struct rig {
    struct trib_codec *codec;
    struct trib_words *words;
    size_t count, chunk, bytes;
    float *x, *got, *right, *residual;
    uint8_t *encoded;
};

static bool has_words(const struct trib_codec_row *row)
{
    return !(row->flags & (TRIB_CODEC_IDENTITY | TRIB_CODEC_MODEL));
}

static void *some(size_t n, size_t each)
{
    void *p = calloc(n, each);

    assert_non_null(p);
    return p;
}

static struct rig rig_open(const char *text, size_t count)
{
    struct rig r = {.count = count,
                    .x = some(count, 4),
                    .got = some(count, 4),
                    .right = some(count, 4),
                    .residual = some(count, 4)};
    const struct trib_rng rng = {.seed = 3, .step = (uint32_t)count};

    assert_ok(trib_codec_create(text, NULL, NULL, &r.codec));
    assert_ok(trib_words_open(r.codec, count, &r.words));
    r.chunk = trib_codec_cut(r.codec, count, 4 * CHUNK, 8 * CHUNK, trib_codec_bound);
    r.encoded = some(trib_words_bound(r.words), 1);
    for (size_t i = 0; i < count; i++)
        r.x[i] = draw_float(rng, i) - 0.5f;
    return r;
}

static void rig_close(struct rig *r)
{
    free(r->x);
    free(r->got);
    free(r->right);
    free(r->residual);
    free(r->encoded);
    trib_words_close(r->words);
    trib_codec_destroy(r->codec);
}

static void encode(struct rig *r, float *residual)
{
    const struct trib_words_source source = {
        .x = r->x,
        .residual = residual,
        .key = {.seed = 5, .step = 6, .stream = 7, .index = 8}};

    r->bytes = 0;
    for (size_t i = 0; i < trib_words_chunks(r->words); i++)
        r->bytes += trib_words_encode(r->words, i, &source, r->encoded + r->bytes);
    assert_true(r->bytes <= trib_words_bound(r->words));
}

/* Decode each chunk of `encoded` separately. */
static void decode_apart(struct rig *r)
{
    const size_t chunks = trib_words_chunks(r->words);
    size_t at = 0, done = 0;

    for (size_t i = 0; i < chunks; i++) {
        uint32_t len;
        memcpy(&len, r->encoded + at, 4);
        const size_t here = i + 1 < chunks ? r->chunk : r->count - done;
        assert_ok(trib_codec_decode(r->codec, r->encoded + at + 4, len, r->right + done,
                                    here));
        at += 4 + len;
        done += here;
    }
    assert_int_equal(at, r->bytes);
}

static trib_status_t take(struct rig *r, size_t bytes, size_t piece)
{
    trib_status_t st = TRIB_INPROGRESS;

    trib_words_begin(r->words);
    for (size_t at = 0; at < bytes && st >= TRIB_OK; at += piece) {
        if (piece > bytes)
            piece = bytes;
        const size_t n = bytes - at < piece ? bytes - at : piece;
        st = trib_words_take(r->words, r->encoded + at, n, r->got);
    }
    return st;
}

static void check(const char *text, size_t count)
{
    struct rig r = rig_open(text, count);
    const bool feeds_back = trib_codec_info(r.codec)->flags & TRIB_CODEC_FEEDBACK;

    assert_true(trib_words_memory(r.codec, count) > 0);
    for (int round = 0; round < 2; round++) {
        encode(&r, feeds_back ? r.residual : NULL);
        decode_apart(&r);
        for (size_t p = 0; p < sizeof(pieces) / sizeof(*pieces); p++) {
            memset(r.got, 0xff, count * 4);
            assert_ok(take(&r, r.bytes, pieces[p]));
            assert_memory_equal(r.got, r.right, count * 4);
        }
    }
    assert_status(take(&r, r.bytes - 1, 333), TRIB_INPROGRESS);
    assert_ok(take(&r, r.bytes, SIZE_MAX));
    assert_status(trib_words_take(r.words, r.encoded, 1, r.got), TRIB_ERR_CODEC);
    memset(r.encoded, 0xff, 4);
    assert_status(take(&r, r.bytes, 1), TRIB_ERR_CODEC);
    rig_close(&r);
}

TEST(test_codecs)
{
    for (size_t c = 0; c < trib_codecs_count; c++)
        for (size_t n = 0;
             has_words(&trib_codecs[c]) && n < sizeof(counts) / sizeof(*counts); n++)
            for (int t = 0; trib_codecs[c].texts[t]; t++)
                check(trib_codecs[c].texts[t], counts[n]);
}

/* What feedback holds back is the rest, to rounding. */
TEST(test_residual)
{
    struct rig r = rig_open("topk:ratio=0.01", LONGEST);

    encode(&r, r.residual);
    assert_ok(take(&r, r.bytes, SIZE_MAX));
    for (size_t i = 0; i < r.count; i++)
        assert_true(r.got[i] + r.residual[i] == r.x[i]);
    rig_close(&r);
}

static void refused(trib_status_t (*check_codec)(const struct trib_codec *,
                                                 struct trib_error *),
                    const char *text, const char *words)
{
    struct trib_error err = {0};
    struct trib_codec *codec;

    assert_ok(trib_codec_create(text, NULL, NULL, &codec));
    assert_status(check_codec(codec, &err), words ? TRIB_ERR_UNSUPPORTED : TRIB_OK);
    assert_true(!words || strstr(err.text, words));
    trib_codec_destroy(codec);
}

TEST(test_refused)
{
    refused(trib_words_check, "none", "encodes nothing");
    refused(trib_words_check, "powersgd", "must be trained by all-reduces");
    refused(trib_words_check, "topk", NULL);
    refused(trib_words_check_state, "powersgd", "must be trained by all-reduces");
    refused(trib_words_check_state, "topk", "is biased");
    refused(trib_words_check_state, "efsign", "is biased");
    refused(trib_words_check_state, "qsgd:bits=8", NULL);
    refused(trib_words_check_state, "bf16", NULL);
}
