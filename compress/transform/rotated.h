/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rotated values: what a quantiser gets in place of a vector, behind the randomised
 * Hadamard transform of hadamard.h.
 *
 *     papers     Suresh, Yu, Kumar, McMahan: "Distributed mean estimation with limited
 *                communication", ICML 2017; THC (thc.c)
 *     equation   C(x) = R^-1 Q(R x); R is orthonormal, so |C(x) - x| = |Q(z) - z| with
 *                z = R x: bias, variance and delta are those of Q. Whatever x is, the
 *                elements of z are about as large as each other, at most sqrt(2 ln(2 d)
 *                / d) |x| or so in a block of d, which is what a scale for many
 *                elements wants
 *     rotation   of each block of `block` elements on its own, of those that remain as
 *                a vector of their own; its signs are the same for all ranks, blocks
 *                and starts
 *     wire       that of Q, of the rotated values: words of integers add as ever
 *     NaN, Inf   z is not finite in a block that has either: then Q says what becomes
 *                of it and, of its bucket, the other blocks; rotated back it is not
 *                finite, whole
 *     large      a block with a magnitude above FLT_MAX / 2^13, of an element or of a
 *                sum, may decode to NaN or Inf
 *     small      as Q; the transform rounds to multiples of 2^-149
 *     state      none
 *
 * A word is made and read in windows that the first cache holds: whole blocks and whole
 * buckets, so that a bucket's head follows from one window.
 */
#ifndef COMPRESS_TRANSFORM_ROTATED_H
#define COMPRESS_TRANSFORM_ROTATED_H

#include "compress/stages.h"

/* Elements; neither block nor bucket has more, and no block has fewer than the
 * least. */
enum { TRIB_ROTATED_WINDOW = 4096, TRIB_ROTATED_BLOCK_MIN = 64 };

/** trib_rotated_unit - elements of the larger of block and bucket, which the other
 * divides. */
size_t trib_rotated_unit(const struct trib_codec *c);

/** trib_rotated_refusal - a reason why these parameters do not go together; NULL: they
 * do. */
const char *trib_rotated_refusal(const struct trib_codec *c);

/* codec.h's trib_codec_propose, …_share_added and encode; of codecs without shares the
 * first two are not called. residual: NULL, or in->x of words that add: it becomes what
 * is left. */
void trib_rotated_propose(const struct trib_codec *c, const float *x, size_t n,
                        float *proposal_out);
void trib_rotated_propose_added(const struct trib_codec *c, const float *x,
                              float *residual, size_t n, float *proposal_out);
void trib_rotated_encode(const struct trib_codec *c, const struct trib_encode *in,
                         float *residual, uint8_t *dst);

struct trib_code;

/* x = decode(whole), and acc += weight * decode(whole), of a valid word */
void trib_rotated_decode(const struct trib_codec *c, const struct trib_code *whole,
                         float *x);
void trib_rotated_add(const struct trib_codec *c, const struct trib_code *whole,
                      float weight, float *acc);

#endif
