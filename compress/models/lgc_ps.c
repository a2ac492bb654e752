/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LGC with a parameter server's loss, all ranks acting as the server. lgc.h describes
 * the paper, the stages and the common part. v_k are rank k's values at the master's
 * positions, divided by the master's scale; E is the encoder, D_k the decoder for rank
 * k.
 *
 *     epoch 2    the master shares its latent c = E(v). Rank k sends its gain g_k of
 *                D_k(c), at index length + k, and its innovation s_k: the
 *                ceil(innovation * n) largest magnitudes of v_k - g_k D_k(c), as pairs
 *                of index and value. So all ranks know the sum over k of g_k D_k(c) +
 *                s_k from c and the encoded sum, and a rank keeps the rest of its v_k.
 *                If D_k(c) is refused, s_k is all of v_k: the plain encoding of a
 *                sparse codec
 *     epoch 1    the values are sent. sample=0: the exchange gives all v_k to all
 *                ranks, and each makes the same steps of trib_autoencoder_train_ps, one
 *                per chunk. Otherwise it gives them the vectors of the masters of the
 *                sampled chunks, and each master's decoder learns from its own vector
 *
 * The paper multiplies innovations by a learned weight and sends the largest of v_k;
 * sending the rest after the gain, and the gain itself, are our choices.
 *
 * Time and memory of each rank grow with the number of ranks, like those of the paper's
 * server: 43,682 weights and one decode per chunk for each rank; with sample=0 the
 * exchange has all v_k.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compress/models/lgc.h"

struct ps {
    struct trib_lgc lgc; /* a record: 1, local v */
    float *innovations; /* of all ranks, `length` each */
    const float **v, **s; /* of all ranks */
};

static size_t innovation_of(const struct trib_codec *c, size_t n)
{
    const double k = ceil(c->param[TRIB_PARAM_INNOVATION] * (double)n * (1 - 1e-12));
    return (size_t)k;
}

/* All ranks have the same positions, and each rank one gain. */
static size_t most(const struct trib_codec *c, size_t n)
{
    return trib_lgc_kept(c, n) + c->ranks;
}

static size_t trained(const struct trib_codec *c, size_t n)
{
    return innovation_of(c, n) + 1;
}

static size_t share_floats(const struct trib_codec *c, size_t n)
{
    return TRIB_LGC_POSITIONS + trib_lgc_kept(c, n) + trib_lgc_latent(c, n);
}

static float *latent_of(const struct trib_lgc *g, float *share)
{
    return share + TRIB_LGC_POSITIONS + g->length;
}

/* ---- create and destroy ---------------------------------------------------------- */

static void destroy(struct trib_model *m)
{
    struct ps *p = (struct ps *)m;

    free(p->innovations);
    free(p->v);
    free(p->s);
    trib_lgc_destroy(m);
}

static trib_status_t create(const struct trib_codec *c,
                            const struct trib_model_opts *opts, struct trib_error *err,
                            struct trib_model **out)
{
    const size_t ranks = (size_t)opts->ranks;
    const struct trib_lgc_form form = {.bytes = sizeof(struct ps),
                                       .record = 1 + trib_lgc_kept(c, opts->piece),
                                       .decoders = ranks,
                                       .innovation = true};
    struct trib_lgc *g;
    const trib_status_t status = trib_lgc_create(c, opts, &form, err, &g);
    if (status != TRIB_OK)
        return status;
    assert(c->ranks >= ranks);
    struct ps *p = (struct ps *)g;
    p->innovations = calloc(ranks * g->length, sizeof *p->innovations);
    p->v = calloc(ranks, sizeof *p->v);
    p->s = calloc(ranks, sizeof *p->s);
    if (!p->innovations || !p->v || !p->s) {
        destroy(&g->base);
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for the model of lgc-ps");
    }
    *out = &g->base;
    return TRIB_OK;
}

/* ---- learning -------------------------------------------------------------------- */

/* Keep the k values largest in magnitude, with 0 elsewhere. */
static void innovation(struct trib_lgc *g, const float *values, size_t k, float *out)
{
    const size_t n = trib_select_largest(g->base.codec->kernels, values, g->length, k,
                                         g->positions, g->work);

    memset(out, 0, g->length * sizeof *out);
    for (size_t i = 0; i < n; i++)
        out[g->positions[i]] = values[g->positions[i]];
}

static size_t elements_of(const struct trib_lgc *g, size_t chunk)
{
    const size_t piece = g->base.opts.piece, left = g->base.opts.total - chunk * piece;
    return left < piece ? left : piece;
}

static bool samples(const struct trib_model *m)
{
    return m->codec->param[TRIB_PARAM_SAMPLE] > 0;
}

/* Vectors of an exchange. sample=0: rank k's vector for chunk i has index i * ranks +
 * k. Otherwise: the masters' vectors of the sampled chunks, consecutively. */
static size_t exchange_floats(const struct trib_model *m)
{
    const struct trib_lgc *g = (const struct trib_lgc *)m;
    const size_t vectors =
        samples(m) ? trib_lgc_samples(g) : g->chunks * (size_t)m->opts.ranks;
    return vectors * g->length;
}

static bool exchange(struct trib_model *m, uint32_t step, float *own_out)
{
    struct trib_lgc *g = (struct trib_lgc *)m;
    const size_t ranks = (size_t)m->opts.ranks, rank = (size_t)m->opts.rank;
    size_t sampled = 0;

    if (!trib_lgc_learns(g, step))
        return false;
    g->step = step;
    memset(own_out, 0, exchange_floats(m) * sizeof *own_out);
    for (size_t i = 0; i < g->chunks; i++) {
        const float *record = g->records + i * g->record;
        size_t at = i * ranks + rank;
        bool gives = record[0] != 0.0f;
        if (samples(m)) {
            if (!trib_lgc_sampled(g, step - 1, i))
                continue;
            at = sampled++;
            gives &= trib_lgc_master(g, step - 1, i) == rank;
        }
        if (gives)
            memcpy(own_out + at * g->length, record + 1, g->length * sizeof *own_out);
    }
    return true;
}

/* Train the decoder of the chunk's master for one step, on the master's vector. */
static void learn_own(struct ps *p, size_t chunk, const float *v)
{
    struct trib_lgc *g = &p->lgc;
    const size_t k = innovation_of(g->base.codec, elements_of(g, chunk));

    innovation(g, v, k, p->innovations);
    (void)trib_autoencoder_train_own(g->ae, trib_lgc_master(g, g->step - 1, chunk), v,
                                     p->innovations);
}

/* Train all decoders for one step, on the vectors of all ranks. */
static void learn_all(struct ps *p, size_t chunk, const float *v)
{
    struct trib_lgc *g = &p->lgc;
    const size_t ranks = (size_t)g->base.opts.ranks;
    const struct trib_autoencoder_batch batch = {.v = p->v,
                                                 .innovation = p->s,
                                                 .n = ranks,
                                                 .step = g->step * (uint32_t)g->chunks +
                                                         (uint32_t)chunk};

    for (size_t k = 0; k < ranks; k++) {
        float *s = p->innovations + k * g->length;
        p->v[k] = v + k * g->length;
        p->s[k] = s;
        innovation(g, p->v[k], innovation_of(g->base.codec, elements_of(g, chunk)), s);
    }
    (void)trib_autoencoder_train_ps(g->ae, &batch);
}

static trib_status_t exchanged(struct trib_model *m, const float *sum,
                               struct trib_error *err)
{
    struct ps *p = (struct ps *)m;
    struct trib_lgc *g = &p->lgc;
    const size_t ranks = (size_t)m->opts.ranks;
    size_t sampled = 0;

    (void)err;
    for (size_t i = 0; i < g->chunks; i++) {
        float *record = g->records + i * g->record;
        const bool due = record[0] != 0.0f;
        record[0] = 0.0f;
        if (samples(m)) {
            if (!trib_lgc_sampled(g, g->step - 1, i))
                continue;
            if (due)
                learn_own(p, i, sum + sampled * g->length);
            sampled++;
        } else if (due) {
            learn_all(p, i, sum + i * ranks * g->length);
        }
    }
    return TRIB_OK;
}

/* ---- chunks ---------------------------------------------------------------------- */

static void share(struct trib_model *m, const struct trib_model_chunk *c,
                  const float *x, float *proposal_out)
{
    struct trib_lgc *g = (struct trib_lgc *)m;

    if (!trib_lgc_share(g, c, x, proposal_out) || g->epoch != TRIB_LGC_CODED)
        return;
    (void)trib_lgc_gather(g, proposal_out, x, g->values);
    trib_lgc_scaled(g, proposal_out, g->values, g->coded);
    trib_autoencoder_encode(g->ae, g->coded, latent_of(g, proposal_out));
}

/* Return the number of values, plus one gain per rank in the last stage. */
static size_t length(const struct trib_model *m, size_t n)
{
    const struct trib_lgc *g = (const struct trib_lgc *)m;

    if (trib_lgc_whole(g, n))
        return n;
    return g->length + (g->epoch == TRIB_LGC_CODED ? (size_t)m->opts.ranks : 0);
}

/* Write the gain, and the largest of the values left at y. */
static void forward_coded(struct trib_lgc *g, const struct trib_model_chunk *c,
                          float *y)
{
    const struct trib_model *m = &g->base;
    const size_t rank = (size_t)m->opts.rank;
    bool refused;

    trib_lgc_scaled(g, c->agreed, y, g->values);
    trib_autoencoder_decode_alone(g->ae, rank,
                                  c->agreed + TRIB_LGC_POSITIONS + g->length, g->coded);
    const float gain = trib_lgc_gain(g, g->values, g->coded, &refused);
    memset(y + g->length, 0, (size_t)m->opts.ranks * sizeof *y);
    if (refused)
        return; /* y has all the values */
    y[g->length + rank] = gain;
    memcpy(g->values, y, g->length * sizeof *y);
    for (size_t i = 0; i < g->length; i++)
        g->values[i] -= g->coded[i] * (gain * c->agreed[TRIB_LGC_SCALE]);
    innovation(g, g->values, innovation_of(m->codec, c->n), y);
}

static void forward(struct trib_model *m, const struct trib_model_chunk *c,
                    const float *x, float *y_out)
{
    struct trib_lgc *g = (struct trib_lgc *)m;

    if (trib_lgc_whole(g, c->n)) {
        memcpy(y_out, x, c->n * sizeof *x);
        return;
    }
    const size_t n = trib_lgc_gather(g, c->agreed, x, y_out);
    if (g->epoch == TRIB_LGC_CODED) {
        forward_coded(g, c, y_out);
        return;
    }
    if (samples(m) && !trib_lgc_sampled(g, g->step, trib_lgc_number(g, c)))
        return;
    float *record = trib_lgc_record(g, c);
    record[0] = n > 0 && !trib_lgc_bad(c->agreed);
    trib_lgc_scaled(g, c->agreed, y_out, record + 1);
}

/* For op mean, the gain has been divided by the ranks like the values. */
static void inverse(struct trib_model *m, const struct trib_model_chunk *c, float *y,
                    bool own, float *x_out)
{
    struct trib_lgc *g = (struct trib_lgc *)m;
    const float *latent = c->agreed + TRIB_LGC_POSITIONS + g->length;

    if (trib_lgc_whole(g, c->n)) {
        memcpy(x_out, y, c->n * sizeof *y);
        return;
    }
    (void)own; /* in a rank's own encoding the gains of other ranks are 0 */
    for (size_t k = 0; k < (size_t)m->opts.ranks && g->epoch == TRIB_LGC_CODED; k++) {
        const float gain = y[g->length + k] * c->agreed[TRIB_LGC_SCALE];
        if (gain == 0.0f)
            continue;
        trib_autoencoder_decode_alone(g->ae, k, latent, g->coded);
        for (size_t i = 0; i < g->length; i++)
            y[i] += g->coded[i] * gain;
    }
    trib_lgc_scatter(c->agreed, y, x_out, c->n);
}

static void learn(struct trib_model *m, const struct trib_model_chunk *c,
                  const float *y, const float *x)
{
    (void)m, (void)c, (void)y, (void)x;
}

const struct trib_model_ops trib_model_lgc_ps = {
    .params = TRIB_LGC_PARAMS | TRIB_PARAM_BIT(INNOVATION),
    TRIB_LGC_SLOTS,
    .sparse = true,
    .most = most,
    .trained = trained,
    .agreed_floats = share_floats,
    .create = create,
    .destroy = destroy,
    .exchange_floats = exchange_floats,
    .exchange = exchange,
    .exchanged = exchanged,
    .propose = share,
    .length = length,
    .forward = forward,
    .inverse = inverse,
    .learn = learn,
};

const struct trib_transform trib_transform_lgc_ps = {.name = "lgc_ps",
                                                     .model = &trib_model_lgc_ps};
