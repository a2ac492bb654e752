/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GradiVeQ (Yu et al.: "GradiVeQ: vector quantization for bandwidth-efficient gradient
 * aggregation in distributed CNN training", NeurIPS 2018; arXiv 1811.03617).
 *
 * A chunk is cut into slices of `slice` elements. A plan runs in cycles. For `train`
 * starts elements are sent unchanged, and rank 0 gathers the slices of the sums. Before
 * the next start rank 0 fits their principal components (pca.h), and all ranks get
 * these by an exchange. Then, for `coded` starts, a slice x of rank w becomes its
 * `kept` coefficients
 *
 *     c_w = U^T (x - mean of slices / ranks)
 *
 * which add; the sum of slices is U (sum of c_w) + mean of slices. Without centre=1 the
 * mean is taken to be 0, as in the paper.
 *
 * A short cycle keeps the basis close to the gradients, and error feedback waits no
 * longer than a cycle. To make few training starts suffice, memory=W keeps older sums:
 * a slice's weight in each basis is W times that in the previous one.
 *
 * Coefficients are float32, or integers of a codec after "+" whose encoded chunks add.
 *
 * The epoch of encoded chunks is the number of the basis. A basis is kept while the
 * next one is trained; elements are then sent unchanged. Error feedback keeps the part
 * outside the basis and sends it in the next training. Its size depends on the
 * gradients, so no delta is guaranteed.
 *
 * NaN and Inf: slices with either are not gathered. When coded, such a slice decodes to
 * NaN, and no other slice is affected. The exception is a codec after "+" with buckets:
 * all slices of the bucket then decode to NaN. State: the sums of gathered slices (rank
 * 0), the basis, the epoch.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compress/models/model_ops.h"
#include "compress/models/pca.h"

struct gradiveq {
    struct trib_model base;
    struct trib_pca *pca;
    uint8_t *basis; /* as written by trib_pca_export */
    void *scratch;
    uint32_t train, cycle; /* starts */
    uint32_t bases; /* fitted so far */
    bool training;
    double energy, kept; /* of data coded on this rank since the last basis */
};

static size_t slice_of(const struct trib_codec *c)
{
    return (size_t)c->param[TRIB_PARAM_SLICE];
}

static size_t most(const struct trib_codec *c, size_t n)
{
    const size_t slice = slice_of(c);
    return (n / slice + (n % slice != 0)) * (size_t)c->param[TRIB_PARAM_KEPT];
}

static const char *refusal(const struct trib_codec *c)
{
    return c->param[TRIB_PARAM_KEPT] > c->param[TRIB_PARAM_SLICE]
               ? "kept is larger than slice; use at most slice"
               : NULL;
}

static void destroy(struct trib_model *m)
{
    struct gradiveq *g = (struct gradiveq *)m;

    trib_pca_destroy(g->pca);
    free(g->basis);
    free(g->scratch);
    free(g);
}

static trib_status_t create(const struct trib_codec *c,
                            const struct trib_model_opts *opts, struct trib_error *err,
                            struct trib_model **out)
{
    const struct trib_pca_opts pca = {.slice = slice_of(c),
                                      .kept = (size_t)c->param[TRIB_PARAM_KEPT],
                                      .centre = c->param[TRIB_PARAM_CENTRE] > 0};
    struct gradiveq *g = calloc(1, sizeof *g);

    if (!g)
        return trib_fail(err, TRIB_ERR_NO_MEMORY,
                         "no memory for the basis of gradiveq");
    g->base.opts = *opts;
    g->train = (uint32_t)c->param[TRIB_PARAM_TRAIN];
    g->cycle = g->train + (uint32_t)c->param[TRIB_PARAM_CODED];
    trib_status_t status = trib_pca_create(&pca, c->kernels, err, &g->pca);
    if (status == TRIB_OK)
        status = trib_pca_available(err);
    if (status == TRIB_OK) {
        g->basis = calloc(1, trib_pca_bytes(g->pca));
        g->scratch = aligned_alloc(64, (trib_pca_scratch(g->pca) + 63) / 64 * 64);
        if (!g->basis || !g->scratch)
            status = trib_fail(err, TRIB_ERR_NO_MEMORY,
                               "no memory for the basis of gradiveq");
    }
    if (status != TRIB_OK) {
        destroy(&g->base);
        return status;
    }
    *out = &g->base;
    return TRIB_OK;
}

static void begin(struct trib_model *m, uint32_t step)
{
    struct gradiveq *g = (struct gradiveq *)m;
    g->training = (step - 1) % g->cycle < g->train;
}

static uint32_t epoch(const struct trib_model *m)
{
    const struct gradiveq *g = (const struct gradiveq *)m;
    return g->training ? 0 : g->bases;
}

static bool learning(const struct trib_model *m)
{
    return ((const struct gradiveq *)m)->training;
}

/* ---- the basis ------------------------------------------------------------------- */

static size_t exchange_floats(const struct trib_model *m)
{
    return 1 + trib_pca_floats(((const struct gradiveq *)m)->pca);
}

/* own_out: 1 if this rank has fitted a basis, then the basis. */
static bool exchange(struct trib_model *m, uint32_t step, float *own_out)
{
    struct gradiveq *g = (struct gradiveq *)m;
    struct trib_error why = {0};

    if ((step - 1) % g->cycle != g->train)
        return false;
    memset(own_out, 0, exchange_floats(m) * sizeof *own_out);
    if (m->opts.rank == 0 && trib_pca_fit(g->pca, &why) == TRIB_OK) {
        own_out[0] = 1.0f;
        trib_pca_get(g->pca, own_out + 1);
    }
    trib_pca_fade(g->pca, m->codec->param[TRIB_PARAM_MEMORY]);
    return true;
}

static trib_status_t exchanged(struct trib_model *m, const float *sum,
                               struct trib_error *err)
{
    struct gradiveq *g = (struct gradiveq *)m;

    if (sum[0] != 1.0f)
        return trib_fail(
            err, TRIB_ERR_CODEC,
            "gradiveq: rank 0 found no principal components of the gradients");
    const trib_status_t status = trib_pca_set(g->pca, sum + 1, err);
    g->bases += status == TRIB_OK;
    g->energy = g->kept = 0;
    return status;
}

/* ---- chunks ---------------------------------------------------------------------- */

static size_t length(const struct trib_model *m, size_t n)
{
    return most(m->codec, n);
}

/* Weight of the mean slice in one rank's contribution, or in the sum. */
static float mean_part(const struct trib_model *m, bool own)
{
    return own && !m->opts.mean ? 1.0f / (float)m->opts.ranks : 1.0f;
}

static void forward(struct trib_model *m, const struct trib_model_chunk *c,
                    const float *x, float *y_out)
{
    struct gradiveq *g = (struct gradiveq *)m;
    trib_pca_encode(g->pca, x, c->n, mean_part(m, true), y_out, g->scratch);
    const float energy = m->codec->kernels->sum_squares(x, c->n);
    const float kept = m->codec->kernels->sum_squares(y_out, most(m->codec, c->n));
    if (isfinite(energy) && isfinite(kept)) {
        g->energy += (double)energy;
        g->kept += (double)kept;
    }
}

/* Omits what is unknown without a basis, or with slices centred on their mean. */
static size_t tell(const struct trib_model *m, char *text, size_t bytes)
{
    const struct gradiveq *g = (const struct gradiveq *)m;
    char since[64] = "";

    if (!g->bases)
        return (size_t)snprintf(text, bytes, "no basis yet");
    if (g->energy > 0 && !(m->codec->param[TRIB_PARAM_CENTRE] > 0))
        snprintf(since, sizeof since, ", %.3f of this rank's since",
                 g->kept / g->energy);
    return (size_t)snprintf(
        text, bytes, "basis %" PRIu32 " keeps %.3f of the energy in its training%s",
        g->bases, 1 - trib_pca_dropped(g->pca), since);
}

static void inverse(struct trib_model *m, const struct trib_model_chunk *c, float *y,
                    bool own, float *x_out)
{
    struct gradiveq *g = (struct gradiveq *)m;
    trib_pca_decode(g->pca, y, c->n, mean_part(m, own), x_out, g->scratch);
}

static void learn(struct trib_model *m, const struct trib_model_chunk *c,
                  const float *y, const float *x)
{
    struct gradiveq *g = (struct gradiveq *)m;

    if (!y && m->opts.rank == 0)
        trib_pca_add(g->pca, x, c->n);
}

/* ---- state: u32 bases, u32 0, basis as exported, sums of slices ------------------ */

enum { HEAD = 8 };

static size_t bytes(const struct trib_model *m)
{
    const struct gradiveq *g = (const struct gradiveq *)m;
    return HEAD + trib_pca_bytes(g->pca) + trib_pca_sums_bytes(g->pca);
}

static void write(const struct trib_model *m, uint8_t *out)
{
    const struct gradiveq *g = (const struct gradiveq *)m;
    const size_t basis = trib_pca_bytes(g->pca);

    memset(out, 0, HEAD + basis);
    memcpy(out, &g->bases, sizeof g->bases);
    if (g->bases)
        trib_pca_export(g->pca, out + HEAD);
    trib_pca_sums_write(g->pca, out + HEAD + basis);
}

static trib_status_t read(struct trib_model *m, const uint8_t *src,
                          struct trib_error *err)
{
    struct gradiveq *g = (struct gradiveq *)m;
    const size_t basis = trib_pca_bytes(g->pca);
    uint32_t bases;

    memcpy(&bases, src, sizeof bases);
    trib_status_t status = trib_pca_sums_check(g->pca, src + HEAD + basis, err);
    if (status == TRIB_OK && bases)
        status = trib_pca_import(g->pca, src + HEAD, basis, err);
    if (status != TRIB_OK)
        return status;
    g->bases = bases;
    trib_pca_sums_read(g->pca, src + HEAD + basis);
    return TRIB_OK;
}

const struct trib_model_ops trib_model_gradiveq = {
    .projects = true,
    .params = TRIB_PARAM_BIT(SLICE) | TRIB_PARAM_BIT(KEPT) | TRIB_PARAM_BIT(TRAIN) |
              TRIB_PARAM_BIT(CODED) | TRIB_PARAM_BIT(CENTRE) | TRIB_PARAM_BIT(MEMORY),
    .quantised = true,
    .piece = trib_model_none_wished,
    .unit = slice_of,
    .refusal = refusal,
    .most = most,
    .trained = most,
    .agreed_floats = trib_model_no_floats,
    .create = create,
    .destroy = destroy,
    .begin = begin,
    .epoch = epoch,
    .learning = learning,
    .exchange_floats = exchange_floats,
    .exchange = exchange,
    .exchanged = exchanged,
    .propose = trib_model_proposes_nothing,
    .settle = trib_model_settled,
    .length = length,
    .forward = forward,
    .inverse = inverse,
    .learn = learn,
    .bytes = bytes,
    .write = write,
    .read = read,
    .tell = tell,
};

const struct trib_transform trib_transform_gradiveq = {.name = "gradiveq",
                                                       .model = &trib_model_gradiveq};
