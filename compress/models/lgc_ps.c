/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LGC with a parameter server's loss (lgc.h has the paper, the stages and what is
 * common), in which all ranks are the server: v_k are the values of rank k at the
 * master's positions, divided by the master's scale, E encoder, D_k the decoder for
 * rank k.
 *
 *     epoch 2   the master shares its latent c = E(v). The word of rank k is its
 *               innovation s_k, its ceil(innovation * n) values largest in magnitude,
 *               times the weight w_k that D_k gives it: pairs of position and value.
 *               D_k is linear in s_k, so all ranks know the sum over k of D_k(c) + w_k
 *               s_k from c and the sum of words.
 *     epoch 1   words are the values. By the exchange all ranks get all v_k, and each
 *               makes the same steps, one a chunk, of trib_autoencoder_train_ps.
 *
 * Time and memory of each rank grow with the number of ranks, as those of the paper's
 * server do: 43,682 weights and a decoding a chunk for each; the exchange is of all
 * v_k.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compress/models/lgc.h"

struct ps {
    struct trib_lgc lgc; /* a record: 1, own v */
    float *innovations; /* of all ranks, of length each */
    const float **v, **s; /* of all ranks */
};

static size_t innovation_of(const struct trib_codec *c, size_t n)
{
    const double k = ceil(c->param[TRIB_PARAM_INNOVATION] * (double)n * (1 - 1e-12));
    return (size_t)k;
}

static const char *refusal(const struct trib_codec *c)
{
    return c->param[TRIB_PARAM_INNOVATION] > c->param[TRIB_PARAM_RATIO]
               ? "innovation is larger than ratio; of the values at most all are sent"
               : NULL;
}

/* All ranks have the same positions. */
static size_t most(const struct trib_codec *c, size_t n)
{
    return trib_lgc_kept(c, n);
}

static size_t share_floats(const struct trib_codec *c, size_t n)
{
    return TRIB_LGC_POSITIONS + trib_lgc_kept(c, n) + trib_lgc_latent(c, n);
}

static float *latent_of(const struct trib_lgc *g, float *share)
{
    return share + TRIB_LGC_POSITIONS + g->length;
}

/* ---- life ------------------------------------------------------------------------ */

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

/* The k values largest in magnitude, times weight; 0 elsewhere. */
static void innovation(struct trib_lgc *g, const float *values, size_t k, float weight,
                       float *out)
{
    const size_t n = trib_select_largest(g->base.codec->kernels, values, g->length, k,
                                         g->positions, g->work);

    memset(out, 0, g->length * sizeof *out);
    for (size_t i = 0; i < n; i++)
        out[g->positions[i]] = weight * values[g->positions[i]];
}

/* The values of rank k in chunk i are at number i * ranks + k. */
static size_t exchange_floats(const struct trib_model *m)
{
    const struct trib_lgc *g = (const struct trib_lgc *)m;
    return g->chunks * (size_t)m->opts.ranks * g->length;
}

static bool exchange(struct trib_model *m, uint32_t step, float *own_out)
{
    struct trib_lgc *g = (struct trib_lgc *)m;
    const size_t ranks = (size_t)m->opts.ranks, rank = (size_t)m->opts.rank;

    if (!trib_lgc_learns(g, step))
        return false;
    g->step = step;
    memset(own_out, 0, exchange_floats(m) * sizeof *own_out);
    for (size_t i = 0; i < g->chunks; i++) {
        const float *record = g->records + i * g->record;
        if (record[0] != 0.0f)
            memcpy(own_out + (i * ranks + rank) * g->length, record + 1,
                   g->length * sizeof *own_out);
    }
    return true;
}

static size_t elements_of(const struct trib_lgc *g, size_t chunk)
{
    const size_t piece = g->base.opts.piece, left = g->base.opts.total - chunk * piece;
    return left < piece ? left : piece;
}

static trib_status_t exchanged(struct trib_model *m, const float *sum,
                               struct trib_error *err)
{
    struct ps *p = (struct ps *)m;
    struct trib_lgc *g = &p->lgc;
    const size_t ranks = (size_t)m->opts.ranks;

    (void)err;
    for (size_t i = 0; i < g->chunks; i++) {
        float *record = g->records + i * g->record;
        const struct trib_autoencoder_batch batch = {
            .v = p->v,
            .innovation = p->s,
            .n = ranks,
            .step = g->step * (uint32_t)g->chunks + (uint32_t)i};
        if (record[0] == 0.0f)
            continue;
        record[0] = 0.0f;
        for (size_t k = 0; k < ranks; k++) {
            float *s = p->innovations + k * g->length;
            p->v[k] = sum + (i * ranks + k) * g->length;
            p->s[k] = s;
            innovation(g, p->v[k], innovation_of(m->codec, elements_of(g, i)), 1.0f, s);
        }
        (void)trib_autoencoder_train_ps(g->ae, &batch);
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

static size_t length(const struct trib_model *m, size_t n)
{
    const struct trib_lgc *g = (const struct trib_lgc *)m;
    return trib_lgc_whole(g, n) ? n : g->length;
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
    if (g->epoch == TRIB_LGC_TRAINING) {
        float *record = trib_lgc_record(g, c);
        record[0] = n > 0 && !trib_lgc_bad(c->agreed);
        trib_lgc_scaled(g, c->agreed, y_out, record + 1);
        return;
    }
    const float weight =
        trib_autoencoder_innovation_weight(g->ae, (size_t)m->opts.rank);
    memcpy(g->values, y_out, g->length * sizeof *y_out);
    innovation(g, g->values, innovation_of(m->codec, c->n), weight, y_out);
}

static void inverse(struct trib_model *m, const struct trib_model_chunk *c, float *y,
                    bool own, float *x_out)
{
    struct trib_lgc *g = (struct trib_lgc *)m;

    if (trib_lgc_whole(g, c->n)) {
        memcpy(x_out, y, c->n * sizeof *y);
        return;
    }
    const float *latent = c->agreed + TRIB_LGC_POSITIONS + g->length;
    const bool nothing = c->agreed[TRIB_LGC_COUNT] == 0.0f;
    const size_t first = own ? (size_t)m->opts.rank : 0;
    const size_t end = own ? first + 1 : (size_t)m->opts.ranks;
    const float part = !own && m->opts.mean ? 1.0f / (float)m->opts.ranks : 1.0f;
    for (size_t k = first; k < end && g->epoch == TRIB_LGC_CODED && !nothing; k++) {
        trib_autoencoder_decode(g->ae, k, latent, NULL, g->coded);
        for (size_t i = 0; i < g->length; i++)
            y[i] += g->coded[i] * (part * c->agreed[TRIB_LGC_SCALE]);
    }
    trib_lgc_scatter(c->agreed, y, x_out, c->n);
}

static void learn(struct trib_model *m, const struct trib_model_chunk *c,
                  const float *y, const float *x)
{
    (void)m, (void)c, (void)y, (void)x;
}

const struct trib_model_ops trib_model_lgc_ps = {
    .params = TRIB_PARAM_BIT(RATIO) | TRIB_PARAM_BIT(DENSE) | TRIB_PARAM_BIT(TRAIN) |
              TRIB_PARAM_BIT(RATE) | TRIB_PARAM_BIT(INNOVATION),
    TRIB_LGC_SLOTS,
    .sparse = true,
    .refusal = refusal,
    .most = most,
    .trained = innovation_of,
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
