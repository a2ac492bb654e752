/* SPDX-License-Identifier: BSD-3-Clause */
/* Models may process a chunk part by part, each part while it is in the cache; others
 * process it whole. */
#include <assert.h>
#include <string.h>

#include "base/minmax.h"
#include "compress/models/model_ops.h"

/* Return the elements of a part, or of the whole chunk. */
static size_t part_of(const struct trib_model *m, size_t n)
{
    const size_t part = m->kind->part ? m->kind->part(m, n) : 0;

    return part ? part : n;
}

void trib_model_propose_added(struct trib_model *m, const struct trib_model_chunk *c,
                              const float *x, float *residual, float *proposal_out)
{
    const bool whole = trib_model_epoch(m) == 0 || m->codec->coefficients;
    const size_t step = whole ? c->n : part_of(m, c->n);

    if (step < c->n)
        memset(proposal_out, 0,
               trib_codec_agreed_floats(m->codec, m->opts.piece) *
                   sizeof *proposal_out);
    if (step == c->n) {
        const struct trib_reduce_args sum = {.src = {residual, x},
                                             .dst = {residual},
                                             .n_src = 2,
                                             .n_dst = 1,
                                             .n = c->n};
        m->codec->kernels->reduce[TRIB_F32][TRIB_SUM](&sum);
        trib_model_propose(m, c, residual, proposal_out);
        return;
    }
    for (size_t at = 0; at < c->n; at += step) {
        const struct trib_model_part part = {c, at, trib_min(c->n - at, step)};
        m->kind->propose_part(m, &part, x + at, residual + at, proposal_out);
    }
}

static void take_decoded(struct trib_model *m, const struct trib_model_chunk *k,
                         float *x)
{
    const struct trib_kernels *kernels = m->codec->kernels;
    const size_t step = part_of(m, k->n);

    if (step == k->n) {
        m->kind->inverse(m, k, m->y, true, m->x);
        kernels->axpy_f32(x, m->x, -1.0f, k->n);
        kernels->drop_not_finite(x, k->n);
        return;
    }
    for (size_t at = 0; at < k->n; at += step) {
        const struct trib_model_part part = {k, at, trib_min(k->n - at, step)};
        m->kind->take_part(m, &part, m->y, x + at);
    }
}

void trib_model_take_own(const struct trib_codec *c, const struct trib_encode *in,
                         const uint8_t *src, size_t len, float *x)
{
    struct trib_model *m = in->model;
    bool valid;

    if (!m || trib_model_epoch(m) == 0) {
        valid =
            trib_model_plain_decode(c, src, len, -1.0f, false, x, in->n) == TRIB_OK;
        c->kernels->drop_not_finite(x, in->n);
    } else {
        const struct trib_model_chunk own = {in->key.index, in->n, in->agreed};
        const struct trib_model_chunk k = trib_model_with_share(m, &own);
        valid = trib_model_coefficients(m, src, len, in->n);
        take_decoded(m, &k, x);
    }
    assert(valid);
    (void)valid;
}
