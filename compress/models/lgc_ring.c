/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LGC among ranks. lgc.h describes the paper, the stages and the common part. v_k are
 * rank k's values at the master's positions, divided by the master's scale; E is the
 * encoder, D the decoder, K the number of ranks.
 *
 *     epoch 2    y_k = E(v_k), times the gain if decoders are linear, about length / 4
 *                floats, which add; the mean of the v_k is approximated by D(mean of
 *                the y_k), the same on all ranks
 *     epoch 1    y_k = the values themselves, then E(v_k) for sampled chunks, else
 *                zeros: so all ranks get the means of both. Before the next start each
 *                rank backpropagates through D, and through E with its own v_k. The
 *                exchange sums the derivatives of the encoder's weights (172,996
 *                floats), and all ranks make the same step for MSE(mean of v_k, D(mean
 *                of E(v_k))), averaged over the sampled chunks
 *
 * One rank with all v_k would make the same step. Its cost does not grow with K. Chunks
 * are processed in index order, in whatever order they arrived.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "compress/models/lgc.h"

/* A record: 1, local v, mean of v, mean of latents. */
static float *own_of(float *record)
{
    return record + 1;
}

static float *mean_of(const struct trib_lgc *g, float *record)
{
    return record + 1 + g->length;
}

static float *latent_of(const struct trib_lgc *g, float *record)
{
    return record + 1 + 2 * g->length;
}

static size_t most(const struct trib_codec *c, size_t n)
{
    return trib_lgc_kept(c, n) + trib_lgc_latent(c, n);
}

static size_t share_floats(const struct trib_codec *c, size_t n)
{
    return TRIB_LGC_POSITIONS + trib_lgc_kept(c, n);
}

static trib_status_t create(const struct trib_codec *c,
                            const struct trib_model_opts *opts, struct trib_error *err,
                            struct trib_model **out)
{
    const size_t n = opts->piece;
    const struct trib_lgc_form form = {
        .bytes = sizeof(struct trib_lgc),
        .record = 1 + 2 * trib_lgc_kept(c, n) + trib_lgc_latent(c, n),
        .decoders = 1};
    struct trib_lgc *g;
    const trib_status_t status = trib_lgc_create(c, opts, &form, err, &g);

    if (status == TRIB_OK)
        *out = &g->base;
    return status;
}

/* ---- learning -------------------------------------------------------------------- */

static size_t exchange_floats(const struct trib_model *m)
{
    return trib_autoencoder_shared_floats(((const struct trib_lgc *)m)->ae);
}

static bool exchange(struct trib_model *m, uint32_t step, float *own_out)
{
    struct trib_lgc *g = (struct trib_lgc *)m;

    if (!trib_lgc_learns(g, step))
        return false;
    g->learned = 0;
    trib_autoencoder_forget(g->ae);
    for (size_t i = 0; i < g->chunks; i++) {
        float *record = g->records + i * g->record;
        const struct trib_autoencoder_part part = {.v = own_of(record),
                                                   .mean = mean_of(g, record),
                                                   .latent = latent_of(g, record),
                                                   .nodes = (size_t)m->opts.ranks};
        if (record[0] == 0.0f)
            continue;
        record[0] = 0.0f;
        g->learned += isfinite(trib_autoencoder_add_part(g->ae, &part));
    }
    memcpy(own_out, trib_autoencoder_shared(g->ae),
           exchange_floats(m) * sizeof *own_out);
    return true;
}

static trib_status_t exchanged(struct trib_model *m, const float *sum,
                               struct trib_error *err)
{
    struct trib_lgc *g = (struct trib_lgc *)m;

    (void)err;
    memcpy(trib_autoencoder_shared(g->ae), sum, exchange_floats(m) * sizeof *sum);
    if (g->learned)
        (void)trib_autoencoder_step(g->ae, g->learned);
    return TRIB_OK;
}

/* ---- chunks ---------------------------------------------------------------------- */

static void share(struct trib_model *m, const struct trib_model_chunk *c,
                  const float *x, float *proposal_out)
{
    (void)trib_lgc_share((struct trib_lgc *)m, c, x, proposal_out);
}

static size_t length(const struct trib_model *m, size_t n)
{
    const struct trib_lgc *g = (const struct trib_lgc *)m;

    if (trib_lgc_whole(g, n))
        return n;
    return g->latent + (g->epoch == TRIB_LGC_TRAINING ? g->length : 0);
}

/* Return the factor from a sum to the mean. */
static float part_of_sum(const struct trib_model *m)
{
    return m->opts.mean ? 1.0f : 1.0f / (float)m->opts.ranks;
}

/* True if decodes add: each is then also multiplied by its gain. */
static bool linear(const struct trib_model *m)
{
    return m->codec->param[TRIB_PARAM_DECODER] == TRIB_DECODER_LINEAR;
}

static void forward(struct trib_model *m, const struct trib_model_chunk *c,
                    const float *x, float *y_out)
{
    struct trib_lgc *g = (struct trib_lgc *)m;
    const bool training = g->epoch == TRIB_LGC_TRAINING;

    if (trib_lgc_whole(g, c->n)) {
        memcpy(y_out, x, c->n * sizeof *x);
        return;
    }
    memset(y_out, 0, length(m, c->n) * sizeof *y_out);
    if (trib_lgc_gather(g, c->agreed, x, g->values) == 0)
        return;
    trib_lgc_scaled(g, c->agreed, g->values, g->coded);
    if (training) {
        memcpy(y_out, g->values, g->length * sizeof *y_out);
        if (!trib_lgc_sampled(g, g->step, trib_lgc_number(g, c)))
            return;
        memcpy(own_of(trib_lgc_record(g, c)), g->coded, g->length * sizeof *y_out);
        y_out += g->length;
    }
    trib_autoencoder_encode(g->ae, g->coded, y_out);
    if (!training && linear(m)) {
        bool refused;
        trib_autoencoder_decode_alone(g->ae, 0, y_out, g->values);
        trib_lgc_times(y_out, trib_lgc_gain(g, g->coded, g->values, &refused),
                       g->latent);
        if (refused) /* 0 times NaN or Inf is not 0 */
            memset(y_out, 0, g->latent * sizeof *y_out);
    }
}

static void inverse(struct trib_model *m, const struct trib_model_chunk *c, float *y,
                    bool own, float *x_out)
{
    struct trib_lgc *g = (struct trib_lgc *)m;

    if (trib_lgc_whole(g, c->n)) {
        memcpy(x_out, y, c->n * sizeof *y);
        return;
    }
    if (g->epoch == TRIB_LGC_TRAINING) {
        trib_lgc_scatter(c->agreed, y, x_out, c->n);
        return;
    }
    const float part = own ? 1.0f : part_of_sum(m);
    trib_lgc_times(y, part, g->latent);
    trib_autoencoder_decode_alone(g->ae, 0, y, g->coded);
    trib_lgc_times(g->coded, c->agreed[TRIB_LGC_SCALE] / part, g->length);
    trib_lgc_scatter(c->agreed, g->coded, x_out, c->n);
}

static void learn(struct trib_model *m, const struct trib_model_chunk *c,
                  const float *y, const float *x)
{
    struct trib_lgc *g = (struct trib_lgc *)m;
    const float part = part_of_sum(m);

    (void)x;
    if (g->epoch != TRIB_LGC_TRAINING || trib_lgc_whole(g, c->n) ||
        c->agreed[TRIB_LGC_COUNT] == 0.0f || trib_lgc_bad(c->agreed) ||
        !trib_lgc_sampled(g, g->step, trib_lgc_number(g, c)))
        return;
    float *record = trib_lgc_record(g, c), *mean = mean_of(g, record);
    float *latent = latent_of(g, record);
    record[0] = 1.0f;
    trib_lgc_scaled(g, c->agreed, y, mean);
    trib_lgc_times(mean, part, g->length);
    memcpy(latent, y + g->length, g->latent * sizeof *y);
    trib_lgc_times(latent, part, g->latent);
}

const struct trib_model_ops trib_model_lgc = {
    .params = TRIB_LGC_PARAMS,
    TRIB_LGC_SLOTS,
    .most = most,
    .trained = trib_lgc_latent,
    .agreed_floats = share_floats,
    .create = create,
    .destroy = trib_lgc_destroy,
    .exchange_floats = exchange_floats,
    .exchange = exchange,
    .exchanged = exchanged,
    .propose = share,
    .length = length,
    .forward = forward,
    .inverse = inverse,
    .learn = learn,
};

const struct trib_transform trib_transform_lgc = {.name = "lgc",
                                                  .model = &trib_model_lgc};
