/* SPDX-License-Identifier: BSD-3-Clause */
/* The kind of codecs with a model: encodes with a plan's model, or without one. */
#include "compress/codec_ops.h"
#include "compress/models/model_ops.h"

static size_t together(const struct trib_codec *c)
{
    return c->stages.transform->model->unit(c);
}

static size_t share_floats(const struct trib_codec *c, size_t n)
{
    const struct trib_model_ops *kind = c->stages.transform->model;
    return c->coefficients ? trib_codec_agreed_floats(c->coefficients, kind->most(c, n))
                           : kind->agreed_floats(c, n);
}

static size_t encode_kept(const struct trib_codec *c, const struct trib_encode *in,
                          float *residual, uint8_t *dst)
{
    if (!in->model)
        return trib_codec_kept_by_decode(c, in, residual, dst);
    const size_t len = trib_model_encode(c, in, dst);
    trib_model_take_own(c, in, dst, len, residual);
    return len;
}

static trib_status_t decode(const struct trib_codec *c, const struct trib_decode *d)
{
    return trib_model_plain_decode(c, d->src, d->len, d->weight, d->overwrite, d->x,
                                   d->n);
}

const struct trib_codec_ops trib_codec_model = {
    .together = together,
    .bound = trib_model_word_bound,
    .sum_bound = trib_model_sum_bound,
    .agreed_floats = share_floats,
    .merge = trib_model_merge,
    .encode = trib_model_encode,
    .encode_kept = encode_kept,
    .decode = decode,
};
