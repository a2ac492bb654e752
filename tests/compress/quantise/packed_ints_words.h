/* SPDX-License-Identifier: BSD-3-Clause */
/* The encodings of several ranks that have agreed on their scales, and their sum. */
#ifndef TESTS_COMPRESS_QUANTISE_PACKED_INTS_WORDS_H
#define TESTS_COMPRESS_QUANTISE_PACKED_INTS_WORDS_H

#include "tests/compress/vectors.h"

enum { RANKS_MOST = 600 };

struct words {
    struct trib_codec *codec;
    size_t n;
    size_t ranks;
    float **x;
    float *share;
    struct trib_encoded word[RANKS_MOST];
    uint8_t *sum;
    size_t sum_len;
};

static inline uint8_t *room(const struct trib_codec *c, size_t n)
{
    return malloc(trib_codec_bound(c, n) + 1);
}

static inline void agree(struct words *w)
{
    const size_t floats = trib_codec_agreed_floats(w->codec, w->n);
    float *own = calloc(floats + 1, sizeof *own);
    w->share = calloc(floats + 1, sizeof *w->share);
    for (size_t i = 0; i < floats; i++)
        w->share[i] = -INFINITY;
    for (size_t r = 0; r < w->ranks; r++) {
        trib_codec_propose(w->codec, w->x[r], w->n, own);
        for (size_t i = 0; i < floats; i++)
            w->share[i] = fmaxf(w->share[i], own[i]);
    }
    free(own);
}

static inline struct words words_new(const char *text, size_t ranks, size_t n,
                              float (*x)(size_t rank, size_t i))
{
    struct trib_error err = {0};
    struct words w = {.codec = codec_new(text, NULL), .n = n, .ranks = ranks};
    assert_status(trib_codec_for_ranks(w.codec, (int)ranks, &err), TRIB_OK);
    w.x = calloc(ranks, sizeof *w.x);
    for (size_t r = 0; r < ranks; r++) {
        w.x[r] = malloc(n * sizeof **w.x + 4);
        for (size_t i = 0; i < n; i++)
            w.x[r][i] = x(r, i);
    }
    agree(&w);
    for (size_t r = 0; r < ranks; r++) {
        const struct trib_encode in = {
            .x = w.x[r], .n = n, .key = {42, 7, (uint32_t)r, 0}, .agreed = w.share};
        uint8_t *dst = room(w.codec, n);
        w.word[r] = (struct trib_encoded){dst, trib_codec_encode(w.codec, &in, dst)};
    }
    w.sum = room(w.codec, n);
    return w;
}

static inline void words_free(struct words *w)
{
    for (size_t r = 0; r < w->ranks; r++) {
        free(w->x[r]);
        free((void *)(uintptr_t)w->word[r].src);
    }
    free(w->x);
    free(w->share);
    free(w->sum);
    trib_codec_destroy(w->codec);
}

static inline trib_status_t merge(struct words *w, size_t first, size_t count,
                                  bool final, uint32_t mean)
{
    const struct trib_merge m = {.words = w->word + first,
                                 .n_words = count,
                                 .n = w->n,
                                 .final = final,
                                 .ranks = mean};
    return trib_codec_merge(w->codec, &m, w->sum, &w->sum_len);
}

static inline void decode_word(const struct words *w, const uint8_t *src, size_t len,
                               float *x)
{
    assert_status(trib_codec_decode(w->codec, src, len, x, w->n), TRIB_OK);
}

#endif
