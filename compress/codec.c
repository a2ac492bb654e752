/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Implements codec.h by calling the table of the codec's kind (codec_ops.h).
 */
#include "compress/codec.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "compress/codec_ops.h"
#include "compress/models/model_ops.h"
#include "compress/quantise/packed_ints.h"

void trib_codec_destroy(struct trib_codec *codec)
{
    if (codec)
        trib_codec_destroy(codec->coefficients);
    free(codec);
}

const struct trib_codec_info *trib_codec_info(const struct trib_codec *codec)
{
    return &codec->info;
}

bool trib_codec_selects_sums(const struct trib_codec *codec)
{
    return trib_codec_selects(codec) &&
           !(codec->stages.select->params & TRIB_PARAM_BIT(BIN));
}

bool trib_codec_selects(const struct trib_codec *codec)
{
    const struct trib_model_ops *model = codec->stages.transform->model;
    return (codec->info.flags & TRIB_CODEC_SPARSE) || (model && model->mark);
}

bool trib_codec_result_loses(const struct trib_codec *codec)
{
    return codec->param[TRIB_PARAM_RESULT] > TRIB_RESULT_SUMS;
}

double trib_codec_ratio(const struct trib_codec *codec)
{
    const bool selects = codec->stages.select->params & TRIB_PARAM_BIT(RATIO);
    return selects && codec->param[TRIB_PARAM_RATIO] > 0
               ? codec->param[TRIB_PARAM_RATIO]
               : 0;
}

void trib_codec_set_ratio(struct trib_codec *codec, double ratio)
{
    assert(trib_codec_ratio(codec) > 0 && ratio > 0 && ratio <= 1);
    codec->param[TRIB_PARAM_RATIO] = ratio;
}

size_t trib_codec_cut(const struct trib_codec *codec, size_t count, size_t chunk,
                      size_t slot_bytes,
                      size_t (*bound)(const struct trib_codec *, size_t))
{
    const size_t wished = trib_codec_piece(codec);
    size_t unit = trib_codec_unit(codec),
           room = wished ? wished : chunk / sizeof(float);

    if (trib_codec_undivided(codec) && (count + unit - 1) / unit < room / unit)
        room = (count + unit - 1) / unit * unit; /* not longer than the vector */
    if (unit > room || bound(codec, unit) > slot_bytes)
        unit = 64;
    size_t n = room / unit * unit;
    if (n == 0)
        n = unit; /* the requested chunk is below one unit; slots have 4 KiB or more */
    while (n / 2 > unit && bound(codec, n / 2 / unit * unit) > slot_bytes)
        n = n / 2 / unit * unit;
    while (n > unit && bound(codec, n) > slot_bytes)
        n -= unit;
    return n;
}

size_t trib_codec_unit(const struct trib_codec *codec)
{
    enum { LINE = 64 };
    const size_t n = codec->ops->together(codec);
    size_t common = LINE; /* the largest power of two that divides both */
    while (n % common)
        common /= 2;
    return n / common * LINE;
}

/* Error feedback around a codec that is no contraction grows without bound (Stich &
 * Karimireddy 2020). Norms of the largest magnitude are accepted: on gradients they
 * contract, though not in the worst case. They are refused if results are rounded too:
 * that loss returns as input, and grew in training with 2 bits. */
bool trib_codec_feedback_grows(const struct trib_codec *c)
{
    const struct trib_quantise *q = c->stages.quantise;
    if (c->param[TRIB_PARAM_UNBIASED] > 0)
        return true;
    const bool scaled = q->bucketing || q->packed_ints;
    if (c->info.flags & TRIB_CODEC_RESULT_LOSES && scaled &&
        trib_quantise_delta(c) <= 0)
        return true;
    const bool of_largest = (q->params & TRIB_PARAM_BIT(NORM)) &&
                            c->param[TRIB_PARAM_NORM] == TRIB_NORM_MAX;
    return q->grows || (q->bucketing && trib_quantise_delta(c) == 0 && !of_largest);
}

static const struct trib_model_ops *model_of(const struct trib_codec *c)
{
    return c->stages.transform->model;
}

trib_status_t trib_codec_for_ranks(struct trib_codec *codec, int ranks,
                                   struct trib_error *err)
{
    if (codec->stages.quantise->packed_ints && !codec->stages.select->sparse &&
        !trib_packed_ints_fit(codec, ranks))
        return trib_fail(
            err, TRIB_ERR_CODEC,
            "codec \"%s\": the sum of %d ranks does not fit into 32 bits; use "
            "fewer bits",
            codec->text, ranks);
    codec->ranks = (uint32_t)ranks;
    if (codec->coefficients)
        return trib_codec_for_ranks(codec->coefficients, ranks, err);
    return TRIB_OK;
}

void trib_codec_for_mean(struct trib_codec *codec)
{
    codec->mean = true;
}

trib_op_t trib_codec_agreement_op(const struct trib_codec *codec)
{
    return model_of(codec) && !codec->coefficients ? TRIB_SUM : TRIB_MAX;
}

size_t trib_codec_piece(const struct trib_codec *codec)
{
    return model_of(codec) ? model_of(codec)->piece(codec) : 0;
}

bool trib_codec_undivided(const struct trib_codec *codec)
{
    return model_of(codec) && model_of(codec)->undivided;
}

size_t trib_codec_agreed_floats(const struct trib_codec *codec, size_t n)
{
    return codec->ops->agreed_floats ? codec->ops->agreed_floats(codec, n) : 0;
}

void trib_codec_propose(const struct trib_codec *codec, const float *x, size_t n,
                        float *proposal_out)
{
    if (codec->ops->propose)
        codec->ops->propose(codec, x, n, proposal_out);
}

void trib_codec_propose_added(const struct trib_codec *codec, const float *x,
                              float *residual, size_t n, float *proposal_out)
{
    if (codec->ops->propose_added && trib_codec_agreed_floats(codec, n)) {
        codec->ops->propose_added(codec, x, residual, n, proposal_out);
        return;
    }
    codec->kernels->axpy_f32(residual, x, 1.0f, n);
    trib_codec_propose(codec, residual, n, proposal_out);
}

trib_status_t trib_codec_merge(const struct trib_codec *codec,
                               const struct trib_merge *m, uint8_t *dst,
                               size_t *len_out)
{
    return codec->ops->merge ? codec->ops->merge(codec, m, dst, len_out)
                             : TRIB_ERR_CODEC;
}

size_t trib_codec_bound(const struct trib_codec *codec, size_t n)
{
    return codec->ops->bound(codec, n);
}

size_t trib_codec_sum_bound(const struct trib_codec *codec, size_t n)
{
    const struct trib_codec_ops *ops = codec->ops;
    return ops->sum_bound ? ops->sum_bound(codec, n) : ops->bound(codec, n);
}

size_t trib_codec_own_bound(const struct trib_codec *codec, size_t n)
{
    return codec->ops->own_bound ? codec->ops->own_bound(codec, n)
                                 : trib_codec_sum_bound(codec, n);
}

size_t trib_codec_star_bound(const struct trib_codec *codec, size_t n)
{
    return codec->ops->star_bound ? codec->ops->star_bound(codec, n)
                                  : trib_codec_sum_bound(codec, n);
}

size_t trib_codec_scratch(const struct trib_codec *codec, size_t n)
{
    return codec->ops->scratch ? codec->ops->scratch(codec, n) : 0;
}

size_t trib_codec_encode(const struct trib_codec *codec, const struct trib_encode *in,
                         uint8_t *dst)
{
    return codec->ops->encode(codec, in, dst);
}

trib_status_t trib_codec_decode(const struct trib_codec *codec, const uint8_t *src,
                                size_t len, float *x, size_t n)
{
    const struct trib_decode d = {src, len, x, n, 1.0f, true, false, NULL};
    return codec->ops->decode(codec, &d);
}

trib_status_t trib_codec_decode_to_zeros(const struct trib_codec *codec,
                                         const uint8_t *src, size_t len, float *x,
                                         size_t n)
{
    const struct trib_decode d = {src, len, x, n, 1.0f, true, true, NULL};
    return codec->ops->decode(codec, &d);
}

trib_status_t trib_codec_decode_add(const struct trib_codec *codec, const uint8_t *src,
                                    size_t len, float weight, float *acc, size_t n)
{
    const struct trib_decode d = {src, len, acc, n, weight, false, false, NULL};
    return codec->ops->decode(codec, &d);
}

trib_status_t trib_codec_decode_marked(const struct trib_codec *codec,
                                       const struct trib_marked_word *word, float *x,
                                       size_t n)
{
    const struct trib_decode d = {word->src, word->len, x, n, word->weight,
                                  word->first, false, word->lines};
    assert(trib_codec_selects(codec));
    return codec->ops->decode(codec, &d);
}

size_t trib_codec_kept_by_decode(const struct trib_codec *c,
                                 const struct trib_encode *in, float *residual,
                                 uint8_t *dst)
{
    const size_t len = c->ops->encode(c, in, dst);
    const trib_status_t status =
        trib_codec_decode_add(c, dst, len, -1.0f, residual, in->n);
    assert(status == TRIB_OK);
    (void)status;
    c->kernels->drop_not_finite(residual, in->n);
    return len;
}

size_t trib_codec_encode_kept(const struct trib_codec *codec,
                              const struct trib_encode *in, float *residual,
                              uint8_t *dst)
{
    assert(in->x == residual && in->mode == TRIB_ENCODE_CONTRIBUTION);
    return codec->ops->encode_kept
               ? codec->ops->encode_kept(codec, in, residual, dst)
               : trib_codec_kept_by_decode(codec, in, residual, dst);
}

size_t trib_codec_encode_ef(const struct trib_codec *codec,
                            const struct trib_encode *in, float *residual, uint8_t *dst)
{
    assert(in->mode == TRIB_ENCODE_CONTRIBUTION);
    if (codec->ops->encode_ef)
        return codec->ops->encode_ef(codec, in, residual, dst);
    const struct trib_reduce_args sum = {.src = {residual, in->x},
                                         .dst = {residual},
                                         .n_src = 2,
                                         .n_dst = 1,
                                         .n = in->n};
    struct trib_encode p = *in;
    p.x = residual;
    codec->kernels->reduce[TRIB_F32][TRIB_SUM](&sum);
    return trib_codec_encode_kept(codec, &p, residual, dst);
}
