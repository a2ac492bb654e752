/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vector that the ranks sum:
 *
 *     | time | noise | error, bytes, work of candidate 1 | … of candidate 2 | … |
 *     | the sample |
 *
 * Errors of an unbiased codec are independent between ranks, so their squares add up.
 * For other codecs the norms add up, the worst case where all ranks err alike. The sum
 * of the samples normalizes these errors, and gives the extra loss of re-encoding a
 * partial sum.
 */
#include "comm/auto/auto_trial.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "base/minmax.h"
#include "base/time.h"
#include "compress/codec.h"
#include "compress/vectors/vector_scale.h"
#include "compress/vectors/vector_words.h"

enum {
    BLOCK = 256, /* contiguous elements: a multiple of each candidate's bucket */
    BLOCKS = 64,
    ERROR = 0,
    BYTES,
    WORK,
    FIGURES, /* per candidate */
    HEAD = 2,
};

static const uint64_t KEY = 0x6175746f; /* for random rounding on the sample */

/* Decay of an error found by an earlier sample: later samples may miss the place that
 * caused it. */
static const double REMEMBERED = 0.75;

struct candidate {
    struct trib_codec *codec;
    struct trib_words *words;
    double sum_bytes; /* per element of the result; 0: as for a contribution */
    bool unbiased, again; /* again: sums are re-encoded */
};

struct trib_auto_trial {
    const struct trib_auto_choice *choice;
    const struct trib_kernels *kernels;
    struct candidate of[TRIB_AUTO_CODECS];
    trib_dtype_t dtype;
    size_t count, n; /* elements of the vector and of the sample */
    size_t taken;
    uint32_t turn; /* number of the sample, equal on all ranks */
    float *sample, *decoded; /* [n] */
    uint8_t *bytes; /* buffer for the longest encoding */
};

/* Return encoded bytes per element of the result: linear encodings widen, selections
 * fill up. */
static double sum_bytes_of(const struct trib_codec *codec, size_t n, int ranks)
{
    const uint32_t flags = trib_codec_info(codec)->flags;
    struct trib_expected words;

    if (trib_codec_expected(codec, n, ranks, &words))
        return words.result;
    return flags & TRIB_CODEC_LINEAR
               ? (double)trib_codec_sum_bound(codec, n) / (double)n
               : 0;
}

static trib_status_t open_candidate(struct trib_auto_trial *t, int i, size_t *bytes)
{
    struct candidate *c = &t->of[i];
    const int ranks = (int)t->choice->ranks;
    trib_status_t st =
        trib_codec_create(t->choice->of[i].text, t->kernels, NULL, &c->codec);

    if (st != TRIB_OK)
        return st;
    /* A codec has no figures if sums of all ranks overflow its encoding. */
    if (trib_codec_for_ranks(c->codec, ranks, NULL) != TRIB_OK)
        return TRIB_OK;
    st = trib_words_open(c->codec, t->n, &c->words);
    if (st != TRIB_OK)
        return st;
    const uint32_t flags = trib_codec_info(c->codec)->flags;
    c->unbiased = flags & TRIB_CODEC_UNBIASED;
    c->again = !(flags & (TRIB_CODEC_LINEAR | TRIB_CODEC_SPARSE)) ||
               trib_codec_result_loses(c->codec);
    c->sum_bytes = sum_bytes_of(c->codec, t->n, ranks);
    *bytes = trib_max(*bytes, trib_words_bound(c->words));
    return TRIB_OK;
}

trib_status_t trib_auto_trial_create(const struct trib_auto_choice *choice,
                                     size_t count, trib_dtype_t dtype,
                                     const struct trib_kernels *kernels,
                                     struct trib_auto_trial **out)
{
    struct trib_auto_trial *t = calloc(1, sizeof(*t));
    size_t bytes = 1;

    assert(count > 0 && choice->codecs > 0);
    *out = t;
    if (!t)
        return TRIB_ERR_NO_MEMORY;
    t->choice = choice;
    t->kernels = kernels;
    t->dtype = dtype;
    t->count = count;
    t->n = trib_min(count, (size_t)BLOCK * BLOCKS);
    t->sample = malloc(t->n * sizeof(float));
    t->decoded = malloc(t->n * sizeof(float));
    trib_status_t st = t->sample && t->decoded ? TRIB_OK : TRIB_ERR_NO_MEMORY;
    for (int i = 1; i < choice->codecs && st == TRIB_OK; i++)
        st = open_candidate(t, i, &bytes);
    if (st == TRIB_OK)
        t->bytes = malloc(bytes);
    if (st == TRIB_OK && t->bytes)
        return TRIB_OK;
    trib_auto_trial_destroy(t);
    *out = NULL;
    return st == TRIB_OK ? TRIB_ERR_NO_MEMORY : st;
}

void trib_auto_trial_destroy(struct trib_auto_trial *trial)
{
    if (!trial)
        return;
    for (int i = 1; i < trial->choice->codecs; i++) {
        trib_words_close(trial->of[i].words);
        trib_codec_destroy(trial->of[i].codec);
    }
    free(trial->sample);
    free(trial->decoded);
    free(trial->bytes);
    free(trial);
}

/* Sampling ------------------------------------------------------------------------- */

void trib_auto_trial_forget(struct trib_auto_trial *trial)
{
    trial->taken = 0;
    trial->turn++;
}

/* Return the first element of the sample's block b. Each block samples one of BLOCKS
 * equal parts of the vector. It moves by multiples of the golden section from sample to
 * sample. So a part of n blocks is fully covered within about 2 n samples, and evenly
 * covered long before. */
static size_t place_of(const struct trib_auto_trial *t, size_t b)
{
    static const uint32_t golden = 0x9e3779b9, apart = 0x85ebca6b; /* of 2^32 */
    const size_t all = (t->count + BLOCK - 1) / BLOCK;
    const size_t first = b * all / BLOCKS, n = (b + 1) * all / BLOCKS - first;

    if (t->n == t->count)
        return b * BLOCK;
    assert(b < BLOCKS && n > 0);
    const uint32_t share = t->turn * golden + (uint32_t)b * apart;
    const size_t block = first + (size_t)(((uint64_t)share * n) >> 32);
    return trib_min(block * BLOCK, t->count - BLOCK);
}

void trib_auto_trial_take(struct trib_auto_trial *trial, const void *input,
                          size_t first, size_t count)
{
    const size_t size = trib_dtype_size(trial->dtype);

    assert(first <= trial->count && count <= trial->count - first);
    for (size_t b = 0; b * BLOCK < trial->n; b++) {
        const size_t place = place_of(trial, b);
        const size_t end = place + trib_min((size_t)BLOCK, trial->n - b * BLOCK);
        const size_t from = trib_max(place, first);
        const size_t to = trib_min(end, first + count);
        if (from >= to)
            continue;
        trib_widen(trial->kernels, trial->dtype, (const char *)input + from * size,
                   to - from, trial->sample + b * BLOCK + from - place);
        trial->taken += to - from;
    }
    assert(trial->taken <= trial->n);
}

bool trib_auto_trial_full(const struct trib_auto_trial *trial)
{
    return trial->taken >= trial->n;
}

/* Figures -------------------------------------------------------------------------- */

size_t trib_auto_trial_floats(const struct trib_auto_trial *trial)
{
    return HEAD + FIGURES * (size_t)(trial->choice->codecs - 1) + trial->n;
}

/* Return the squared error of x after encoding and decoding by candidate c. *bytes
 * receives the encoded size, *took the time of one encode and two decodes. */
static double lose(struct trib_auto_trial *t, const struct candidate *c, const float *x,
                   size_t *bytes, uint64_t *took)
{
    const struct trib_words_source source = {
        .x = x, .key = {.seed = KEY}, .total = t->count};
    const uint64_t begin = trib_now_ns();
    double lost = 0;

    *bytes = 0;
    if (!c->words)
        return NAN;
    for (size_t i = 0; i < trib_words_chunks(c->words); i++)
        *bytes += trib_words_encode(c->words, i, &source, t->bytes + *bytes);
    const uint64_t encoded = trib_now_ns();
    trib_words_begin(c->words);
    if (trib_words_take(c->words, t->bytes, *bytes, t->decoded) != TRIB_OK)
        return NAN;
    *took = encoded - begin + 2 * (trib_now_ns() - encoded);
    for (size_t i = 0; i < t->n; i++) {
        const double d = (double)t->decoded[i] - (double)x[i];
        lost += d * d;
    }
    return lost;
}

void trib_auto_trial_write(struct trib_auto_trial *trial, double took_us,
                           double noise_us, float *floats)
{
    float *at = floats + HEAD;

    assert(trib_auto_trial_full(trial) && took_us >= 0);
    floats[0] = (float)took_us;
    floats[1] = (float)noise_us;
    for (int i = 1; i < trial->choice->codecs; i++, at += FIGURES) {
        const struct candidate *c = &trial->of[i];
        size_t bytes;
        uint64_t took = 0;
        const double lost = lose(trial, c, trial->sample, &bytes, &took);
        const double n = (double)trial->n;
        at[ERROR] = (float)(c->unbiased ? lost : sqrt(lost));
        at[BYTES] = (float)((double)bytes / n);
        at[WORK] = (float)((double)took / n);
    }
    for (size_t i = 0; i < trial->n; i++)
        at[i] = trial->sample[i];
}

static double square_of(const float *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

/* Return the expected error of the sum over the squared sum: each rank's loss, plus the
 * loss of re-encoding partial sums. */
static double nmse_of(struct trib_auto_trial *t, int i, double error, const float *sum,
                      double square)
{
    const struct candidate *c = &t->of[i];
    double lost = c->unbiased ? error : error * error;
    uint64_t took;
    size_t bytes;

    if (c->again)
        lost += t->choice->of[i].merges * lose(t, c, sum, &bytes, &took);
    if (square > 0)
        return lost / square;
    return lost <= 0 ? 0 : NAN; /* also if both are NaN */
}

void trib_auto_trial_read(struct trib_auto_trial *trial, const float *floats,
                          struct trib_auto_choice *choice)
{
    const double p = choice->ranks;
    const float *sum = floats + HEAD + FIGURES * (size_t)(choice->codecs - 1);
    const double square = square_of(sum, trial->n);
    const float *at = floats + HEAD;

    assert(choice == trial->choice && p >= 1);
    if (floats[0] > 0) {
        choice->of[choice->now].took_us = (double)floats[0] / p;
        choice->of[choice->now].noise_us = (double)floats[1] / p;
    }
    for (int i = 1; i < choice->codecs; i++, at += FIGURES) {
        struct trib_auto_candidate *c = &choice->of[i];
        const double once = (double)at[BYTES] / p;
        const double result = trial->of[i].sum_bytes;
        const double nmse = nmse_of(trial, i, (double)at[ERROR], sum, square);
        c->nmse = isfinite(nmse) ? fmax(nmse, REMEMBERED * c->nmse) : -1;
        c->bytes = (once + (result > 0 ? result : once)) / 2;
        c->work_ns = (double)at[WORK] / p;
    }
}
