/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds that rotate values before they quantise them. */
#include "compress/codec_ops.h"
#include "compress/quantise/packed_ints.h"
#include "compress/transform/rotated.h"

static size_t bytes_of(const struct trib_codec *c, size_t n)
{
    return c->stages.quantise->bytes(c, n);
}

static size_t encode(const struct trib_codec *c, const struct trib_encode *in,
                     uint8_t *dst)
{
    trib_rotated_encode(c, in, NULL, dst);
    return bytes_of(c, in->n);
}

static size_t encode_kept(const struct trib_codec *c, const struct trib_encode *in,
                          float *residual, uint8_t *dst)
{
    trib_rotated_encode(c, in, residual, dst);
    return bytes_of(c, in->n);
}

static trib_status_t decode_valid(const struct trib_codec *c,
                                  const struct trib_decode *d)
{
    const struct trib_code code = {d->src, d->len, d->n, 0, d->n};
    if (d->overwrite)
        trib_rotated_decode(c, &code, d->x);
    else
        trib_rotated_add(c, &code, d->weight, d->x);
    return TRIB_OK;
}

static trib_status_t decode(const struct trib_codec *c, const struct trib_decode *d)
{
    return d->len == bytes_of(c, d->n) ? decode_valid(c, d) : TRIB_ERR_CODEC;
}

static trib_status_t decode_packed(const struct trib_codec *c,
                                   const struct trib_decode *d)
{
    return trib_packed_ints_valid(c, d->src, d->len, d->n) ? decode_valid(c, d)
                                                     : TRIB_ERR_CODEC;
}

const struct trib_codec_ops trib_codec_rotated = {
    .together = trib_rotated_unit,
    .bound = bytes_of,
    .encode = encode,
    .decode = decode,
};

const struct trib_codec_ops trib_codec_rotated_packed = {
    .together = trib_rotated_unit,
    .bound = trib_packed_ints_bound,
    .own_bound = trib_packed_ints_bytes,
    .agreed_floats = trib_packed_ints_agreed_floats,
    .propose = trib_rotated_propose,
    .propose_added = trib_rotated_propose_added,
    .merge = trib_packed_ints_merge,
    .encode = encode,
    .encode_kept = encode_kept,
    .decode = decode_packed,
};
