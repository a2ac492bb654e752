/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The randomised Hadamard transform of a vector, in blocks. It is linear and
 * orthonormal. It preserves norms, and spreads large elements over a whole block with
 * an approximately normal distribution, so that a quantiser with one scale loses least
 * (Vargaftik et al., "DRIVE", NeurIPS 2021; Li et al., "THC", NSDI 2024).
 *
 * n floats become n floats, without padding. Blocks of 2^log2_block start at element 0.
 * If n is not a multiple of the block, one more transform with separate signs runs over
 * the last 2^log2_block elements of the result, so that the remainder is spread too.
 * Vectors shorter than a block use blocks of the largest power of two that fits.
 *
 *     | block 0 | block 1 | ... | block m-1 |rest|
 *                               |   |  the last  |   over results and the rest
 *
 * Sums: decoding the sum of transforms gives the sum of vectors if all have the same n
 * and the same struct trib_rht. A NaN or Inf makes its whole block NaN, and the last
 * block if they overlap. Scaling comes after the sums of 2^log2_block elements, so
 * magnitudes above FLT_MAX / 2^log2_block may overflow to Inf.
 */
#ifndef COMPRESS_TRANSFORM_HADAMARD_H
#define COMPRESS_TRANSFORM_HADAMARD_H

#include "compress/kernels/kernels.h"

enum { TRIB_RHT_LOG2_BLOCK = 10 }; /* the default */

struct trib_rht {
    uint64_t first; /* index of element 0 in the whole vector */
    uint32_t key[2];
    uint32_t last_key[2];
    int log2_block; /* 0 … TRIB_HADAMARD_LOG2_MAX */
};

/**
 * trib_rht_create - return the transform; equal arguments give the same one.
 *
 * seed, step  as in struct trib_encode_key, but without stream: the ranks share the
 *             transform
 * first       index of the first element in the whole vector, which selects the signs
 */
struct trib_rht trib_rht_create(uint64_t seed, uint32_t step, uint64_t first,
                                int log2_block);

/**
 * trib_rht_forward, trib_rht_inverse - transform n floats of y to z.
 *
 * Each inverts the other up to rounding, about log2_block * 2^-24 of a block's norm.
 *
 * z        equal to y, or not overlapping it
 */
void trib_rht_forward(const struct trib_kernels *k, const struct trib_rht *t, float *z,
                      const float *y, size_t n);
void trib_rht_inverse(const struct trib_kernels *k, const struct trib_rht *t, float *z,
                      const float *y, size_t n);

#endif
