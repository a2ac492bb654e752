/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/models/lgc.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compress/sparsify/selection.h"

enum {
    PIECE_MOST = 1 << 20, /* elements */
    LENGTH_GOOD = 1024, /* the autoencoder costs 1.6 KB for each */
    POSITION_END = 1 << 24, /* beyond, a float skips integers */
    INFINITE = 0x7f800000, /* as a magnitude; those of NaN are above it */
};

static struct trib_lgc *lgc_of(struct trib_model *m)
{
    return (struct trib_lgc *)m;
}

static const struct trib_lgc *const_lgc_of(const struct trib_model *m)
{
    return (const struct trib_lgc *)m;
}

/* ---- of a codec and the elements of a chunk -------------------------------------- */

size_t trib_lgc_kept(const struct trib_codec *c, size_t n)
{
    return trib_selection_part(c, n);
}

size_t trib_lgc_latent(const struct trib_codec *c, size_t n)
{
    return trib_autoencoder_latent_of(trib_lgc_kept(c, n));
}

size_t trib_lgc_piece(const struct trib_codec *c)
{
    const double wanted = LENGTH_GOOD / c->param[TRIB_PARAM_RATIO];
    return wanted < PIECE_MOST ? (size_t)wanted : PIECE_MOST;
}

size_t trib_lgc_unit(const struct trib_codec *c)
{
    (void)c;
    return 1;
}

/* ---- life ------------------------------------------------------------------------ */

/* Two digits, rounded up. */
static double two_digits(double x)
{
    const double unit = pow(10, floor(log10(x)) - 1);
    return ceil(x / unit) * unit;
}

static trib_status_t check(const struct trib_codec *c,
                           const struct trib_model_opts *opts, struct trib_error *err)
{
    const size_t n = opts->piece, length = trib_lgc_kept(c, n);
    const double ratio = c->param[TRIB_PARAM_RATIO],
                 least = TRIB_AUTOENCODER_LENGTH_MIN;

    if (length < TRIB_AUTOENCODER_LENGTH_MIN) {
        const double chunk = ceil(least / ratio);
        return trib_fail(
            err, TRIB_ERR_CODEC,
            "codec \"%s\": of chunks of %zu elements it takes %zu values, and its "
            "autoencoder needs %.0f: give chunks of at least %.0f elements "
            "(%.0f bytes), or ratio=%.2g or more",
            c->info.text, n, length, least, chunk, chunk * (double)sizeof(float),
            two_digits(least / (double)n));
    }
    if (length > TRIB_AUTOENCODER_LENGTH_MAX || n > POSITION_END)
        return trib_fail(
            err, TRIB_ERR_CODEC,
            "codec \"%s\": chunks of %zu elements are too large, %d elements and "
            "%d values of them are the most: set a smaller chunk",
            c->info.text, n, POSITION_END, TRIB_AUTOENCODER_LENGTH_MAX);
    if (opts->ranks > TRIB_AUTOENCODER_DECODERS_MAX)
        return trib_fail(err, TRIB_ERR_CODEC, "codec \"%s\" is for at most %d ranks",
                         c->info.text, TRIB_AUTOENCODER_DECODERS_MAX);
    return TRIB_OK;
}

static bool allocate(struct trib_lgc *g, size_t piece)
{
    g->records = calloc(g->chunks * g->record, sizeof *g->records);
    g->values = calloc(g->length, sizeof *g->values);
    g->coded = calloc(g->length, sizeof *g->coded);
    g->positions = calloc(piece + 64, sizeof *g->positions);
    g->work = calloc(piece + 256, sizeof *g->work);
    g->keys = calloc(g->length, sizeof *g->keys);
    return g->records && g->values && g->coded && g->positions && g->work && g->keys;
}

trib_status_t trib_lgc_create(const struct trib_codec *c,
                              const struct trib_model_opts *opts,
                              const struct trib_lgc_form *form, struct trib_error *err,
                              struct trib_lgc **out)
{
    const struct trib_autoencoder_opts ae = {.length = trib_lgc_kept(c, opts->piece),
                                             .decoders = form->decoders,
                                             .innovation = form->innovation,
                                             .rate = (float)c->param[TRIB_PARAM_RATE],
                                             .adam = true,
                                             .seed = opts->seed};
    trib_status_t status = check(c, opts, err);
    if (status != TRIB_OK)
        return status;
    struct trib_lgc *g = calloc(1, form->bytes);
    if (!g)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for the model of lgc");
    g->base.opts = *opts;
    g->length = ae.length;
    g->latent = trib_lgc_latent(c, opts->piece);
    g->chunks = (opts->total + opts->piece - 1) / opts->piece;
    g->record = form->record;
    status = trib_autoencoder_create(&ae, c->kernels, err, &g->ae);
    if (status == TRIB_OK && !allocate(g, opts->piece))
        status = trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for the model of lgc");
    if (status != TRIB_OK) {
        trib_lgc_destroy(&g->base);
        return status;
    }
    assert(g->latent == trib_autoencoder_latent(g->ae));
    *out = g;
    return TRIB_OK;
}

void trib_lgc_destroy(struct trib_model *m)
{
    struct trib_lgc *g = lgc_of(m);

    trib_autoencoder_destroy(g->ae);
    free(g->records);
    free(g->values);
    free(g->coded);
    free(g->positions);
    free(g->work);
    free(g->keys);
    free(g);
}

static uint32_t stage_of(const struct trib_lgc *g, uint32_t step)
{
    const double *param = g->base.codec->param, dense = param[TRIB_PARAM_DENSE];

    if (step <= dense)
        return TRIB_LGC_PLAIN;
    return step <= dense + param[TRIB_PARAM_TRAIN] ? TRIB_LGC_TRAINING : TRIB_LGC_CODED;
}

void trib_lgc_seed(struct trib_model *m)
{
    trib_autoencoder_seed(lgc_of(m)->ae, m->opts.seed);
}

void trib_lgc_begin(struct trib_model *m, uint32_t step)
{
    struct trib_lgc *g = lgc_of(m);

    g->step = step;
    g->epoch = stage_of(g, step);
}

uint32_t trib_lgc_epoch(const struct trib_model *m)
{
    return const_lgc_of(m)->epoch;
}

bool trib_lgc_learning(const struct trib_model *m)
{
    return const_lgc_of(m)->epoch != TRIB_LGC_CODED;
}

bool trib_lgc_learns(const struct trib_lgc *g, uint32_t step)
{
    return step > 1 && stage_of(g, step - 1) == TRIB_LGC_TRAINING;
}

/* ---- chunks ---------------------------------------------------------------------- */

bool trib_lgc_whole(const struct trib_lgc *g, size_t n)
{
    return n <= g->latent;
}

size_t trib_lgc_number(const struct trib_lgc *g, const struct trib_model_chunk *c)
{
    assert(c->first / g->base.opts.piece < g->chunks);
    return c->first / g->base.opts.piece;
}

float *trib_lgc_record(struct trib_lgc *g, const struct trib_model_chunk *c)
{
    return g->records + trib_lgc_number(g, c) * g->record;
}

/* The scale of finite elements; 1 if there are none. */
static float scale_of(const float *x, const uint32_t *positions, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[positions[i]] * (double)x[positions[i]];
    const float scale = n ? (float)sqrt(sum / (double)n) : 0.0f;
    return scale > 0 ? scale : 1.0f;
}

/* Rises as floats fall, and among equals as positions rise; NaN comes first or last. */
static uint64_t key_of(float value, uint32_t position)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t falling = bits >> 31 ? bits : ~bits & 0x7fffffffu;
    return (uint64_t)falling << 32 | position;
}

static int by_key(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

bool trib_lgc_share(struct trib_lgc *g, const struct trib_model_chunk *c,
                    const float *x, float *proposal_out)
{
    const size_t ranks = (size_t)g->base.opts.ranks;
    const size_t master = (g->step + trib_lgc_number(g, c)) % ranks;

    const struct trib_codec *codec = g->base.codec;

    if (trib_lgc_whole(g, c->n))
        return false;
    const bool bad = codec->kernels->max_magnitude(x, c->n) >= INFINITE;
    if (bad)
        proposal_out[TRIB_LGC_SCALE] = NAN;
    if (master != (size_t)g->base.opts.rank)
        return false;
    const size_t n = trib_select_largest(
        codec->kernels, x, c->n, trib_lgc_kept(codec, c->n), g->positions, g->work);
    for (size_t i = 0; i < n; i++)
        g->keys[i] = key_of(x[g->positions[i]], g->positions[i]);
    qsort(g->keys, n, sizeof *g->keys, by_key);
    if (!bad)
        proposal_out[TRIB_LGC_SCALE] = scale_of(x, g->positions, n);
    proposal_out[TRIB_LGC_COUNT] = (float)n;
    for (size_t i = 0; i < n; i++)
        proposal_out[TRIB_LGC_POSITIONS + i] = (float)(uint32_t)g->keys[i];
    return true;
}

static bool whole_number(float x, size_t below)
{
    return x >= 0 && x < (float)below && x == floorf(x);
}

static bool positions_valid(const struct trib_lgc *g, size_t n, const float *share)
{
    const float count = share[TRIB_LGC_COUNT];
    bool valid = whole_number(count, trib_lgc_kept(g->base.codec, n) + 1);

    for (size_t i = 0; valid && i < (size_t)count; i++)
        valid = whole_number(share[TRIB_LGC_POSITIONS + i], n);
    return valid;
}

void trib_lgc_settle(struct trib_model *m, const struct trib_model_chunk *c,
                     float *share)
{
    const struct trib_lgc *g = lgc_of(m);
    const float scale = share[TRIB_LGC_SCALE];

    if (trib_lgc_whole(g, c->n))
        return;
    const bool bad = !isfinite(scale), positions = positions_valid(g, c->n, share);
    if (bad)
        share[TRIB_LGC_SCALE] = NAN;
    else if (!positions || scale <= 0)
        share[TRIB_LGC_SCALE] = 1.0f;
    if (!positions || scale <= 0)
        share[TRIB_LGC_COUNT] = 0.0f;
}

size_t trib_lgc_gather(const struct trib_lgc *g, const float *share, const float *x,
                       float *values_out)
{
    const size_t n = (size_t)share[TRIB_LGC_COUNT];

    for (size_t i = 0; i < n; i++)
        values_out[i] = x[(size_t)share[TRIB_LGC_POSITIONS + i]];
    memset(values_out + n, 0, (g->length - n) * sizeof *values_out);
    return n;
}

void trib_lgc_scatter(const float *share, const float *y, float *x_out, size_t n)
{
    const bool bad = trib_lgc_bad(share);

    memset(x_out, 0, n * sizeof *x_out);
    if (bad)
        x_out[0] = share[TRIB_LGC_COUNT] == 0.0f ? NAN : 0.0f;
    for (size_t i = 0; i < (size_t)share[TRIB_LGC_COUNT]; i++)
        x_out[(size_t)share[TRIB_LGC_POSITIONS + i]] = bad ? NAN : y[i];
}

void trib_lgc_scaled(const struct trib_lgc *g, const float *share, const float *values,
                     float *out)
{
    for (size_t i = 0; i < g->length; i++)
        out[i] = values[i] / share[TRIB_LGC_SCALE];
}

void trib_lgc_times(float *x, float factor, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= factor;
}

/* ---- state ----------------------------------------------------------------------- */

static size_t records_bytes(const struct trib_lgc *g)
{
    return g->chunks * g->record * sizeof *g->records;
}

size_t trib_lgc_bytes(const struct trib_model *m)
{
    const struct trib_lgc *g = const_lgc_of(m);
    return trib_autoencoder_save_bytes(g->ae) + records_bytes(g);
}

void trib_lgc_write(const struct trib_model *m, uint8_t *out)
{
    const struct trib_lgc *g = const_lgc_of(m);

    trib_autoencoder_save(g->ae, out);
    memcpy(out + trib_autoencoder_save_bytes(g->ae), g->records, records_bytes(g));
}

/* Whatever floats there are to be learned from: those of a gradient may be NaN as
 * well. */
trib_status_t trib_lgc_read(struct trib_model *m, const uint8_t *src,
                            struct trib_error *err)
{
    struct trib_lgc *g = lgc_of(m);
    const size_t weights = trib_autoencoder_save_bytes(g->ae);

    for (size_t i = 0; i < g->chunks; i++) {
        float due;
        memcpy(&due, src + weights + i * g->record * sizeof due, sizeof due);
        if (due != 0.0f && due != 1.0f)
            return trib_fail(err, TRIB_ERR_MISMATCH,
                             "what lgc is to learn of chunk %zu is damaged", i);
    }
    const trib_status_t status = trib_autoencoder_load(g->ae, src, weights, err);
    if (status == TRIB_OK)
        memcpy(g->records, src + weights, records_bytes(g));
    return status;
}
