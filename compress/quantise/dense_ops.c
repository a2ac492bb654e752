/* SPDX-License-Identifier: BSD-3-Clause */
/* Dense kinds: a quantiser's bytes, integers that add, and numbers that add exactly. */
#include "compress/codec_ops.h"
#include "compress/quantise/buckets.h"
#include "compress/quantise/exact_sum.h"
#include "compress/quantise/packed_ints.h"

size_t trib_quantise_bucket(const struct trib_codec *c)
{
    const struct trib_quantise *q = c->stages.quantise;
    if (q->exact)
        return TRIB_EXACT_BLOCK;
    if (q->packed_ints) {
        const struct trib_packed_ints l = q->packed_ints->layout(c);
        return l.heads ? l.bucket : 1;
    }
    if (q->bounds)
        return (size_t)c->param[TRIB_PARAM_BUCKET];
    return q->bucketing ? trib_buckets_layout(c).bucket : 1;
}

static size_t bytes_of(const struct trib_codec *c, size_t n)
{
    return c->stages.quantise->bytes(c, n);
}

/* kept: NULL, or in->x for chunks that add: replaced by the residual */
static size_t encode(const struct trib_codec *c, const struct trib_encode *in,
                     float *kept, uint8_t *dst)
{
    const struct trib_values v = {.x = in->x,
                                  .n = in->n,
                                  .count = in->n,
                                  .key = in->key,
                                  .agreed = in->agreed,
                                  .kept = kept};
    c->stages.quantise->encode(c, &v, dst);
    return c->stages.quantise->bytes(c, in->n);
}

static size_t encode_all(const struct trib_codec *c, const struct trib_encode *in,
                         uint8_t *dst)
{
    return encode(c, in, NULL, dst);
}

static void decode(const struct trib_codec *c, const struct trib_decode *d)
{
    const struct trib_code code = {d->src, d->len, d->n, 0, d->n};
    if (d->overwrite)
        c->stages.quantise->decode(c, &code, d->x);
    else
        c->stages.quantise->decode_add(c, &code, d->weight, d->x);
}

static trib_status_t dense_decode(const struct trib_codec *c,
                                  const struct trib_decode *d)
{
    if (d->len != c->stages.quantise->bytes(c, d->n))
        return TRIB_ERR_CODEC;
    decode(c, d);
    return TRIB_OK;
}

const struct trib_codec_ops trib_codec_dense = {
    .together = trib_quantise_bucket,
    .bound = bytes_of,
    .encode = encode_all,
    .decode = dense_decode,
};

/* Integers that add ---------------------------------------------------------------- */

static size_t packed_kept(const struct trib_codec *c, const struct trib_encode *in,
                          float *residual, uint8_t *dst)
{
    return trib_packed_ints_keeps(c) ? encode(c, in, residual, dst)
                               : trib_codec_kept_by_decode(c, in, residual, dst);
}

static trib_status_t packed_decode(const struct trib_codec *c,
                                   const struct trib_decode *d)
{
    if (!trib_packed_ints_valid(c, d->src, d->len, d->n))
        return TRIB_ERR_CODEC;
    decode(c, d);
    return TRIB_OK;
}

const struct trib_codec_ops trib_codec_packed = {
    .together = trib_quantise_bucket,
    .bound = trib_packed_ints_bound,
    .own_bound = trib_packed_ints_bytes,
    .agreed_floats = trib_packed_ints_agreed_floats,
    .propose = trib_packed_ints_propose,
    .propose_added = trib_packed_ints_propose_added,
    .merge = trib_packed_ints_merge,
    .encode = encode_all,
    .encode_kept = packed_kept,
    .decode = packed_decode,
};

/* Numbers that add exactly --------------------------------------------------------- */

static size_t exact_encode(const struct trib_codec *c, const struct trib_encode *in,
                           uint8_t *dst)
{
    return trib_exact_encode(c, in->x, in->n, dst);
}

static trib_status_t exact_decode(const struct trib_codec *c,
                                  const struct trib_decode *d)
{
    if (!trib_exact_valid(c, d->src, d->len, d->n))
        return TRIB_ERR_CODEC;
    decode(c, d);
    return TRIB_OK;
}

const struct trib_codec_ops trib_codec_exact = {
    .together = trib_quantise_bucket,
    .bound = trib_exact_bound,
    .own_bound = trib_exact_own_bound,
    .star_bound = trib_exact_own_bound,
    .merge = trib_exact_merge,
    .encode = exact_encode,
    .decode = exact_decode,
};
