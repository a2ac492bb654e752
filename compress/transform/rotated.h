/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rotated values: the quantiser's input after the randomised Hadamard transform of
 * hadamard.h.
 *
 *     papers     Suresh, Yu, Kumar, McMahan: "Distributed mean estimation with limited
 *                communication", ICML 2017; THC (thc.c)
 *     equation   C(x) = R^-1 Q(R x). R is orthonormal, so |C(x) - x| = |Q(z) - z| with
 *                z = R x: bias, variance and delta are those of Q. For any x the
 *                elements of z have similar magnitudes, at most about sqrt(2 ln(2 d) /
 *                d) |x| in a block of d, which suits a scale shared by many elements
 *     rotation   each block of `block` elements is rotated separately, and so is the
 *                remainder, as a vector of its own. The signs are the same for all
 *                ranks, blocks and starts
 *     wire       that of Q, for the rotated values: encoded integers add as usual
 *     NaN, Inf   make z non-finite in their block; Q then determines the result of that
 *                block and of the other blocks in its bucket; after rotation the whole
 *                block is non-finite
 *     large      a block with an element or a sum above FLT_MAX / 2^13 may decode to
 *                NaN or Inf
 *     small      as Q; the transform rounds to multiples of 2^-149
 *     state      none
 *
 * Encoding and decoding proceed in windows that fit into the first-level cache. Windows
 * have whole blocks and whole buckets, so that a bucket's head depends on one window.
 */
#ifndef COMPRESS_TRANSFORM_ROTATED_H
#define COMPRESS_TRANSFORM_ROTATED_H

#include "compress/stages.h"

/* Elements; blocks and buckets are at most a window, and blocks at least the
 * minimum. */
enum { TRIB_ROTATED_WINDOW = 4096, TRIB_ROTATED_BLOCK_MIN = 64 };

/** trib_rotated_unit - return the larger of block and bucket; the other divides it. */
size_t trib_rotated_unit(const struct trib_codec *c);

/** trib_rotated_refusal - return why these parameters do not fit together; NULL: they
 * do. */
const char *trib_rotated_refusal(const struct trib_codec *c);

/* trib_codec_propose, trib_codec_propose_added and encode of codec.h. Codecs without
 * agreed scales never call the first two. residual: NULL, or in->x for chunks that add:
 * it becomes the residual. */
void trib_rotated_propose(const struct trib_codec *c, const float *x, size_t n,
                        float *proposal_out);
void trib_rotated_propose_added(const struct trib_codec *c, const float *x,
                              float *residual, size_t n, float *proposal_out);
void trib_rotated_encode(const struct trib_codec *c, const struct trib_encode *in,
                         float *residual, uint8_t *dst);

struct trib_code;

/* x = decode(whole), and acc += weight * decode(whole), for a valid encoded chunk */
void trib_rotated_decode(const struct trib_codec *c, const struct trib_code *whole,
                         float *x);
void trib_rotated_add(const struct trib_codec *c, const struct trib_code *whole,
                      float weight, float *acc);

#endif
