/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of a codec, by its kind: codec.c calls through this table and asks for
 * no kind.
 *
 *     dense     the bytes of its quantiser, of a length that follows from n
 *     packed    integers on a grid that ranks share, which add (quantise/packed_ints.h)
 *     exact     numbers that add without rounding (quantise/exact.h)
 *     bounded   integers that are as many bits apart as they need, which add
 *               (quantise/bounded.h)
 *     varlen    codes in as many bytes as they need (pack/varlen.h)
 *     sparse    positions and values (sparsify/sparse_block.c)
 *     rotated   of either of the first two, behind a transform (transform/rotated.h)
 *     model     what was learned (models/model.h)
 *
 * codec_create.c chooses the kind. The functions are those of codec.h without
 * "trib_codec_"; arguments have been checked there.
 */
#ifndef COMPRESS_CODEC_OPS_H
#define COMPRESS_CODEC_OPS_H

#include "compress/stages.h"

struct trib_codec_ops {
    /* Elements that are handled together; 1: each on its own, or all of a chunk. */
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

/* Rows of kinds in which an operation has nothing to do of its own: codec.c. */
size_t trib_codec_no_scratch(const struct trib_codec *c, size_t n);
size_t trib_codec_same_bound(const struct trib_codec *c, size_t n); /* that of sums */
size_t trib_codec_same_sum_bound(const struct trib_codec *c, size_t n); /* that of
                                                                         * words */
size_t trib_codec_agrees_on_nothing(const struct trib_codec *c, size_t n);
void trib_codec_proposes_nothing(const struct trib_codec *c, const float *x, size_t n,
                               float *proposal_out);
void trib_codec_only_added(const struct trib_codec *c, const float *x, float *residual,
                           size_t n, float *proposal_out);
trib_status_t trib_codec_no_merge(const struct trib_codec *c,
                                  const struct trib_merge *m, uint8_t *dst,
                                  size_t *len_out);
/* encode_kept by a decode of what was encoded, encode_ef by a sum before encode_kept */
size_t trib_codec_kept_by_decode(const struct trib_codec *c,
                                 const struct trib_encode *in, float *residual,
                                 uint8_t *dst);
size_t trib_codec_ef_by_sum(const struct trib_codec *c, const struct trib_encode *in,
                            float *residual, uint8_t *dst);

/* The rows of a kind whose ranks agree on nothing and whose words do not add. */
#define TRIB_CODEC_NEVER_ADDS \
    .agreed_floats = trib_codec_agrees_on_nothing, \
    .propose = trib_codec_proposes_nothing, .propose_added = trib_codec_only_added, \
    .merge = trib_codec_no_merge

/* The rows of a kind whose words have one bound, wherever they are from. */
#define TRIB_CODEC_ONE_BOUND \
    .own_bound = trib_codec_same_bound, .star_bound = trib_codec_same_bound, \
    .sum_bound = trib_codec_same_sum_bound

#endif
