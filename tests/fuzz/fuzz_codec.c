/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes 0-1 select a text of the table of codecs, bytes 2-3 the length and the
 * instruction set. The rest is first decoded (any bytes result in a status), then used
 * as floats, encoded and decoded (never fails). For linear codecs, the bytes are merged
 * with a valid encoded chunk, and used as scales that ranks agreed on.
 */
#include "compress/codec.h"
#include "compress/kernels/kernels.h"
#include "tests/fuzz/reach.h"

unsigned fuzz_reached; /* encoded chunks that decode, or that add to a valid one */

static const char *const isas[] = {"auto", "c", "avx2",
                                   "neon"}; /* auto if not available */
enum {
    TEXTS_MAX = 512,
    ISAS = sizeof isas / sizeof *isas,
    N_MAX = 4096, /* the bits above it select the instruction set */
    RANKS = 300
};

struct text {
    const char *text;
    uint32_t hash;
    struct trib_codec *codecs[ISAS]; /* created once: building tables takes longer than
                                      * a decode */
};

/* FNV-1a: the corpus depends on it. */
static uint32_t hash_of(const char *text)
{
    uint32_t h = 2166136261u;
    for (; *text; text++)
        h = (h ^ (uint8_t)*text) * 16777619u;
    return h;
}

static size_t texts_of(struct text *out)
{
    size_t n = 0;
    for (size_t i = 0; i < trib_codecs_count; i++)
        for (const char *const *t = trib_codecs[i].texts; *t; t++, n++)
            if (n < TEXTS_MAX)
                out[n] = (struct text){.text = *t, .hash = hash_of(*t)};
    if (n > TEXTS_MAX)
        abort();
    return n;
}

static uint32_t weight(uint32_t hash, uint32_t choice)
{
    const uint32_t h = (hash ^ choice * 0x9e3779b9u) * 0x7feb352du;
    return (h ^ h >> 15) * 0x846ca68bu;
}

/* Return the text with the largest weight: a new text takes few choices from the
 * others, so that most inputs keep their text. */
static struct text *text_get(uint32_t choice)
{
    static struct text texts[TEXTS_MAX];
    static size_t n;
    struct text *best = texts;
    if (n == 0)
        n = texts_of(texts);
    for (size_t i = 1; i < n; i++)
        if (weight(texts[i].hash, choice) > weight(best->hash, choice))
            best = &texts[i];
    return best;
}

static const struct trib_codec *codec_get(uint32_t choice, size_t isa)
{
    struct text *t = text_get(choice);
    struct trib_codec **c = &t->codecs[isa];
    const struct trib_kernels *kernels = trib_kernels_get(isas[isa]);
    if (!*c && (trib_codec_create(t->text, kernels, NULL, c) != TRIB_OK ||
                trib_codec_for_ranks(*c, RANKS, NULL) != TRIB_OK))
        abort();
    return *c;
}

static void check_decode(const struct trib_codec *c, const uint8_t *data, size_t size,
                         size_t n)
{
    uint8_t *src = copy_new(data, size);
    float *x = calloc(n ? n : 1, sizeof *x), *acc = calloc(n ? n : 1, sizeof *acc);
    if (!x || !acc)
        abort();
    const trib_status_t status = trib_codec_decode(c, src, size, x, n);
    if (trib_codec_decode_add(c, src, size, 1.0f, acc, n) != status)
        abort();
    if (status != TRIB_OK && status != TRIB_ERR_CODEC)
        abort();
    fuzz_reached += status == TRIB_OK;
    free(src);
    free(x);
    free(acc);
}

static void check_encode(const struct trib_codec *c, const uint8_t *data, size_t size,
                         enum trib_encode_mode mode)
{
    const size_t n = size / sizeof(float), scratch = trib_codec_scratch(c, n);
    float *x = copy_new(data, n * sizeof(float)), *y = malloc(n * sizeof *y + 1);
    uint8_t *code = malloc(trib_codec_bound(c, n) + 1);
    void *work = aligned_alloc(64, scratch + 64);
    if (!y || !code || !work)
        abort();
    const struct trib_encode in = {.x = x, .n = n, .mode = mode, .scratch = work};
    const size_t len = trib_codec_encode(c, &in, code);
    if (len > trib_codec_bound(c, n) ||
        trib_codec_decode(c, code, len, y, n) != TRIB_OK)
        abort();
    free(x);
    free(y);
    free(code);
    free(work);
}

static void check_merge(const struct trib_codec *c, const uint8_t *data, size_t size,
                        size_t n)
{
    const size_t floats = trib_codec_agreed_floats(c, n);
    float *x = calloc(n + 1, sizeof *x), *share = calloc(floats + 1, sizeof *share);
    uint8_t *own = malloc(trib_codec_bound(c, n) + 1), *theirs = copy_new(data, size);
    uint8_t *sum = malloc(trib_codec_bound(c, n) + 1);
    size_t len = size < n * sizeof *x ? size : n * sizeof *x;
    if (!x || !share || !own || !sum)
        abort();
    memcpy(x, data, len);
    len = size < floats * sizeof *share ? size : floats * sizeof *share;
    memcpy(share, data, len);
    const struct trib_encode in = {.x = x, .n = n, .agreed = share};
    const size_t own_len = trib_codec_encode(c, &in, own);
    for (size_t count = 1; count <= 2; count++) {
        struct trib_encoded words[] = {{own, own_len}, {theirs, size}};
        const struct trib_merge m = {.words = words + 2 - count,
                                     .piece = n,
                                     .n_words = count,
                                     .n = n,
                                     .final = count == 2,
                                     .ranks = size % 3};
        const trib_status_t status = trib_codec_merge(c, &m, sum, &len);
        /* encoded chunks of a model cannot be decoded without it */
        const bool learns = trib_codec_info(c)->flags & TRIB_CODEC_MODEL;
        if (status == TRIB_OK &&
            (len > trib_codec_bound(c, n) ||
             (!learns && trib_codec_decode(c, sum, len, x, n) != TRIB_OK)))
            abort();
        if (status != TRIB_OK && status != TRIB_ERR_CODEC)
            abort();
        fuzz_reached += status == TRIB_OK;
    }
    free(x);
    free(share);
    free(own);
    free(theirs);
    free(sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4)
        return 0;
    const size_t where = data[2] | (size_t)data[3] << 8, n = where % N_MAX;
    const struct trib_codec *c =
        codec_get(data[0] | (uint32_t)data[1] << 8, where / N_MAX % ISAS);
    check_decode(c, data + 4, size - 4, n);
    if (trib_codec_info(c)->flags & TRIB_CODEC_LINEAR && size > 4)
        check_merge(c, data + 4, size - 4, n);
    check_encode(c, data + 4, size - 4, TRIB_ENCODE_CONTRIBUTION);
    if (trib_codec_info(c)->flags & TRIB_CODEC_SPARSE) { /* otherwise it is the same */
        check_encode(c, data + 4, size - 4, TRIB_ENCODE_EXACT);
        check_encode(c, data + 4, size - 4, TRIB_ENCODE_RESULT);
    }
    return 0;
}
