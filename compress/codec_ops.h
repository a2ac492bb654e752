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
    size_t (*scratch)(const struct trib_codec *c, size_t n);
    size_t (*bound)(const struct trib_codec *c, size_t n);
    size_t (*own_bound)(const struct trib_codec *c, size_t n);
    size_t (*star_bound)(const struct trib_codec *c, size_t n);
    size_t (*sum_bound)(const struct trib_codec *c, size_t n);
    size_t (*agreed_floats)(const struct trib_codec *c, size_t n);
    void (*propose)(const struct trib_codec *c, const float *x, size_t n,
                  float *proposal_out);
    void (*propose_added)(const struct trib_codec *c, const float *x, float *residual,
                        size_t n, float *proposal_out);
    trib_status_t (*merge)(const struct trib_codec *c, const struct trib_merge *m,
                           uint8_t *dst, size_t *len_out);
    size_t (*encode)(const struct trib_codec *c, const struct trib_encode *in,
                     uint8_t *dst);
    size_t (*encode_kept)(const struct trib_codec *c, const struct trib_encode *in,
                          float *residual, uint8_t *dst);
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

/* Default operations for kinds that have nothing of their own to do (codec.c). */
size_t trib_codec_no_scratch(const struct trib_codec *c, size_t n);
/* the bound of sums */
size_t trib_codec_same_bound(const struct trib_codec *c, size_t n);
/* the bound of any chunk */
size_t trib_codec_same_sum_bound(const struct trib_codec *c, size_t n);
size_t trib_codec_agrees_on_nothing(const struct trib_codec *c, size_t n);
void trib_codec_proposes_nothing(const struct trib_codec *c, const float *x, size_t n,
                               float *proposal_out);
void trib_codec_only_added(const struct trib_codec *c, const float *x, float *residual,
                           size_t n, float *proposal_out);
trib_status_t trib_codec_no_merge(const struct trib_codec *c,
                                  const struct trib_merge *m, uint8_t *dst,
                                  size_t *len_out);
/* encode_kept by decoding the encoded chunk; encode_ef by adding, then encode_kept */
size_t trib_codec_kept_by_decode(const struct trib_codec *c,
                                 const struct trib_encode *in, float *residual,
                                 uint8_t *dst);
size_t trib_codec_ef_by_sum(const struct trib_codec *c, const struct trib_encode *in,
                            float *residual, uint8_t *dst);

/* Operations of a kind without agreed scales and without merge. */
#define TRIB_CODEC_NEVER_ADDS \
    .agreed_floats = trib_codec_agrees_on_nothing, \
    .propose = trib_codec_proposes_nothing, .propose_added = trib_codec_only_added, \
    .merge = trib_codec_no_merge

/* Operations of a kind with one bound for contributions and sums. */
#define TRIB_CODEC_ONE_BOUND \
    .own_bound = trib_codec_same_bound, .star_bound = trib_codec_same_bound, \
    .sum_bound = trib_codec_same_sum_bound

#endif
