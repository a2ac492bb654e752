/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/models/lgc.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compress/sparsify/selection.h"

enum {
    PIECE_MOST = 1 << 20, /* elements */
    LENGTH_GOOD = 1024, /* values; the autoencoder costs 1.6 KB for each */
    POSITION_END = 1 << 24, /* from here, floats cannot represent every integer */
    GUARD = 10, /* times the norm of the input: larger decodes are refused */
    INFINITE = 0x7f800000, /* as a magnitude; NaN is above it */
};

static struct trib_lgc *lgc_of(struct trib_model *m)
{
    return (struct trib_lgc *)m;
}

static const struct trib_lgc *const_lgc_of(const struct trib_model *m)
{
    return (const struct trib_lgc *)m;
}

/* ---- sizes, from the codec and the elements of a chunk --------------------------- */

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

const char *trib_lgc_refusal(const struct trib_codec *c)
{
    if (c->param[TRIB_PARAM_EVERY] > c->param[TRIB_PARAM_TRAIN])
        return "every is larger than train; it would never learn";
    if (c->param[TRIB_PARAM_INNOVATION] > c->param[TRIB_PARAM_RATIO] &&
        c->stages.transform->model->params & TRIB_PARAM_BIT(INNOVATION))
        return "innovation is larger than ratio; use at most ratio";
    return NULL;
}

/* ---- create and destroy ---------------------------------------------------------- */

/* Round up to two digits. */
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
            "codec \"%s\": chunks of %zu elements yield only %zu selected values, and "
            "its autoencoder needs %.0f: use chunks of at least %.0f elements "
            "(%.0f bytes), or ratio=%.2g or more",
            c->info.text, n, length, least, chunk, chunk * (double)sizeof(float),
            two_digits(least / (double)n));
    }
    if (length > TRIB_AUTOENCODER_LENGTH_MAX || n > POSITION_END)
        return trib_fail(
            err, TRIB_ERR_CODEC,
            "codec \"%s\": chunks of %zu elements are too large, the limits are %d "
            "elements and %d selected values: set a smaller chunk",
            c->info.text, n, POSITION_END, TRIB_AUTOENCODER_LENGTH_MAX);
    if (opts->ranks > TRIB_AUTOENCODER_DECODERS_MAX)
        return trib_fail(err, TRIB_ERR_CODEC, "codec \"%s\" supports at most %d ranks",
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
    g->seen = calloc(piece / 8 + 1, 1);
    return g->seen && g->records && g->values && g->coded && g->positions && g->work &&
           g->keys;
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
                                             .linear = c->param[TRIB_PARAM_DECODER] ==
                                                       TRIB_DECODER_LINEAR,
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
    free(g->seen);
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

/* Return the index of a start within the learning stage, from 1. */
static uint32_t lesson_of(const struct trib_lgc *g, uint32_t step)
{
    return step - (uint32_t)g->base.codec->param[TRIB_PARAM_DENSE];
}

bool trib_lgc_learns(const struct trib_lgc *g, uint32_t step)
{
    const uint32_t every = (uint32_t)g->base.codec->param[TRIB_PARAM_EVERY];
    return step > 1 && stage_of(g, step - 1) == TRIB_LGC_TRAINING &&
           lesson_of(g, step - 1) % every == 0;
}

/* Return the number of chunks that are coded: the last one may be too short. */
static size_t coded_chunks(const struct trib_lgc *g)
{
    const size_t last = g->base.opts.total - (g->chunks - 1) * g->base.opts.piece;
    return g->chunks - (g->chunks > 1 && trib_lgc_whole(g, last));
}

size_t trib_lgc_samples(const struct trib_lgc *g)
{
    const size_t sample = (size_t)g->base.codec->param[TRIB_PARAM_SAMPLE];
    const size_t all = coded_chunks(g);
    return sample && sample < all ? sample : all;
}

bool trib_lgc_sampled(const struct trib_lgc *g, uint32_t step, size_t chunk)
{
    const size_t all = coded_chunks(g), sample = trib_lgc_samples(g);
    if (!trib_lgc_learns(g, step + 1) || chunk >= all)
        return false;
    const size_t lesson =
        lesson_of(g, step) / (size_t)g->base.codec->param[TRIB_PARAM_EVERY];
    return (chunk + all - lesson * sample % all) % all < sample;
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

/* Return the root mean square of finite elements; 1 if it is 0. */
static float scale_of(const float *x, const uint32_t *positions, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[positions[i]] * (double)x[positions[i]];
    const float scale = n ? (float)sqrt(sum / (double)n) : 0.0f;
    return scale > 0 ? scale : 1.0f;
}

/* Return a key that increases as floats decrease and, among equals, as positions
 * increase; NaN is first or last. */
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

size_t trib_lgc_master(const struct trib_lgc *g, uint32_t step, size_t chunk)
{
    return (step + chunk) % (size_t)g->base.opts.ranks;
}

static bool all_pick(const struct trib_lgc *g)
{
    return g->base.codec->param[TRIB_PARAM_PICK] == TRIB_PICK_ALL;
}

/* Write the k largest of x, by decreasing value, to g->keys; return their number. */
static size_t choose(struct trib_lgc *g, const float *x, size_t n, size_t k)
{
    const size_t chosen =
        trib_select_largest(g->base.codec->kernels, x, n, k, g->positions, g->work);

    for (size_t i = 0; i < chosen; i++)
        g->keys[i] = key_of(x[g->positions[i]], g->positions[i]);
    qsort(g->keys, chosen, sizeof *g->keys, by_key);
    return chosen;
}

/* Propose this rank's block of positions, and its part of the scale. */
static void share_block(struct trib_lgc *g, const struct trib_model_chunk *c,
                        const float *x, float *proposal_out)
{
    const size_t ranks = (size_t)g->base.opts.ranks, rank = (size_t)g->base.opts.rank;
    const size_t k = trib_lgc_kept(g->base.codec, c->n);
    const size_t first = k * rank / ranks, room = k * (rank + 1) / ranks - first;
    const size_t n = choose(g, x, c->n, room);
    float *positions = proposal_out + TRIB_LGC_POSITIONS + first;

    for (size_t i = 0; i < n; i++)
        positions[rank % 2 ? room - 1 - i : i] = (float)((uint32_t)g->keys[i] + 1);
    if (n)
        proposal_out[TRIB_LGC_SCALE] = scale_of(x, g->positions, n) / (float)ranks;
    proposal_out[TRIB_LGC_COUNT] = (float)n;
}

bool trib_lgc_share(struct trib_lgc *g, const struct trib_model_chunk *c,
                    const float *x, float *proposal_out)
{
    const size_t rank = (size_t)g->base.opts.rank;
    const struct trib_codec *codec = g->base.codec;

    if (trib_lgc_whole(g, c->n))
        return false;
    const bool master = rank == trib_lgc_master(g, g->step, trib_lgc_number(g, c));
    const bool bad = codec->kernels->max_magnitude(x, c->n) >= INFINITE;
    if (all_pick(g)) {
        share_block(g, c, x, proposal_out);
    } else if (master) {
        const size_t n = choose(g, x, c->n, trib_lgc_kept(codec, c->n));
        proposal_out[TRIB_LGC_SCALE] = scale_of(x, g->positions, n);
        proposal_out[TRIB_LGC_COUNT] = (float)n;
        for (size_t i = 0; i < n; i++)
            proposal_out[TRIB_LGC_POSITIONS + i] = (float)(uint32_t)g->keys[i];
    }
    if (bad)
        proposal_out[TRIB_LGC_SCALE] = NAN;
    return master;
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

/* Compact the ranks' blocks to the positions that are set, each once; return false if
 * any is invalid. */
static bool join_blocks(struct trib_lgc *g, size_t n, float *share)
{
    const size_t k = trib_lgc_kept(g->base.codec, n);
    float *positions = share + TRIB_LGC_POSITIONS;
    size_t count = 0;
    bool valid = true;

    for (size_t i = 0; i < k && valid; i++) {
        const float at = positions[i];
        if (at == 0.0f)
            continue;
        valid = whole_number(at - 1.0f, n);
        if (!valid)
            break;
        const size_t element = (size_t)at - 1;
        if (g->seen[element / 8] >> element % 8 & 1)
            continue;
        g->seen[element / 8] |= (uint8_t)(1u << element % 8);
        positions[count++] = (float)element;
    }
    for (size_t i = 0; i < count; i++)
        g->seen[(size_t)positions[i] / 8] = 0;
    share[TRIB_LGC_COUNT] = (float)count;
    return valid;
}

void trib_lgc_settle(struct trib_model *m, const struct trib_model_chunk *c,
                     float *share)
{
    struct trib_lgc *g = lgc_of(m);
    const float scale = share[TRIB_LGC_SCALE];

    if (trib_lgc_whole(g, c->n))
        return;
    const bool bad = !isfinite(scale);
    const bool positions =
        all_pick(g) ? join_blocks(g, c->n, share) : positions_valid(g, c->n, share);
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

float trib_lgc_gain(struct trib_lgc *g, const float *v, const float *d,
                    bool *refused_out)
{
    double vv = 0, vd = 0, dd = 0;

    for (size_t i = 0; i < g->length; i++) {
        vv += (double)v[i] * (double)v[i];
        vd += (double)v[i] * (double)d[i];
        dd += (double)d[i] * (double)d[i];
    }
    *refused_out = isfinite(vv) && vv > 0 && !(dd <= GUARD * GUARD * vv);
    g->decoded += vv > 0;
    g->refused += *refused_out;
    const float gain = *refused_out || !(dd > 0) ? 0.0f : (float)(vd / dd);
    return isfinite(gain) ? gain : 0.0f;
}

void trib_lgc_mark(const struct trib_model *m, const struct trib_model_chunk *c,
                   const struct trib_sent *sent)
{
    if (trib_lgc_whole(const_lgc_of(m), c->n)) {
        trib_sent_mark_all(sent, c->n);
        return;
    }
    for (size_t i = 0; i < (size_t)c->agreed[TRIB_LGC_COUNT]; i++) {
        const size_t element = (size_t)c->agreed[TRIB_LGC_POSITIONS + i];
        const size_t at = sent->first + element;
        sent->mask[at / 8] |= (uint8_t)(1u << at % 8);
        if (sent->clear)
            sent->clear[element] = 0;
    }
}

size_t trib_lgc_tell(const struct trib_model *m, char *text, size_t bytes)
{
    static const char *const stages[] = {"unchanged elements", "learning", "coded"};
    const struct trib_lgc *g = const_lgc_of(m);

    return (size_t)snprintf(text, bytes,
                            "%s, %" PRIu64 " decodes, %" PRIu64 " of them refused",
                            stages[g->epoch], g->decoded, g->refused);
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

/* Validates the flags only: gradient floats in the records may be NaN. */
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
                             "the training record of chunk %zu is damaged", i);
    }
    const trib_status_t status = trib_autoencoder_load(g->ae, src, weights, err);
    if (status == TRIB_OK)
        memcpy(g->records, src + weights, records_bytes(g));
    return status;
}
