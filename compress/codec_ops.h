/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of each kind of codec. codec.c calls through this table and does not
 * branch on the kind.
 *
 *     dense     the quantiser's bytes; their length depends on n only
 *     packed    integers on a grid shared by all ranks; chunks add
 *               (quantise/packed_ints.h)
 *     exact     numbers that add without rounding (quantise/exact_sum.h)
 *     bounded   integers of variable spacing in bits; chunks add (quantise/bounded.h)
 *     varlen    codes of variable length (pack/varlen.h)
 *     sparse    positions and values (sparsify/sparse_block.c)
 *     rotated   dense or packed, after a transform (transform/rotated.h)
 *     model     a learned model (models/model.h)
 *
 * codec_create.c chooses the kind. codec.h declares the functions with the prefix
 * "trib_codec_"; their arguments have already been checked.
 */
#ifndef COMPRESS_CODEC_OPS_H
#define COMPRESS_CODEC_OPS_H

#include "compress/stages.h"

struct trib_codec_ops {
    /* Number of elements handled together; 1: each separately, or the whole chunk. */
    size_t (*together)(const struct trib_codec *c);
    size_t (*scratch)(const struct trib_codec *c, size_t n); /* NULL: none */
    size_t (*bound)(const struct trib_codec *c, size_t n);
    size_t (*sum_bound)(const struct trib_codec *c, size_t n); /* NULL: as bound */
    size_t (*own_bound)(const struct trib_codec *c, size_t n); /* NULL: as sum_bound */
    size_t (*star_bound)(const struct trib_codec *c, size_t n); /* NULL: as sum_bound */
    size_t (*agreed_floats)(const struct trib_codec *c, size_t n); /* NULL: none */
    /* NULL: writes nothing */
    void (*propose)(const struct trib_codec *c, const float *x, size_t n,
                    float *proposal_out);
    /* NULL: add x to the residual, then propose */
    void (*propose_added)(const struct trib_codec *c, const float *x, float *residual,
                          size_t n, float *proposal_out);
    /* NULL: encoded chunks do not add */
    trib_status_t (*merge)(const struct trib_codec *c, const struct trib_merge *m,
                           uint8_t *dst, size_t *len_out);
    size_t (*encode)(const struct trib_codec *c, const struct trib_encode *in,
                     uint8_t *dst);
    /* NULL: trib_codec_kept_by_decode */
    size_t (*encode_kept)(const struct trib_codec *c, const struct trib_encode *in,
                          float *residual, uint8_t *dst);
    /* NULL: add x to the residual, then encode_kept */
    size_t (*encode_ef)(const struct trib_codec *c, const struct trib_encode *in,
                        float *residual, uint8_t *dst);
    trib_status_t (*decode)(const struct trib_codec *c, const struct trib_decode *d);
};

extern const struct trib_codec_ops trib_codec_dense;
extern const struct trib_codec_ops trib_codec_packed;
extern const struct trib_codec_ops trib_codec_exact;
extern const struct trib_codec_ops trib_codec_bounded;
extern const struct trib_codec_ops trib_codec_varlen;
extern const struct trib_codec_ops trib_codec_sparse;
extern const struct trib_codec_ops trib_codec_rotated;
extern const struct trib_codec_ops trib_codec_rotated_packed;
extern const struct trib_codec_ops trib_codec_model;

/** trib_codec_kept_by_decode - encode, and decode that to compute the residual. */
size_t trib_codec_kept_by_decode(const struct trib_codec *c,
                                 const struct trib_encode *in, float *residual,
                                 uint8_t *dst);

#endif
