/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The randomised Hadamard transform of a vector, in blocks. It is linear and
 * orthonormal: it keeps norms, and makes what is large in few elements about normally
 * distributed over a whole block, so that a quantiser with one scale for all loses
 * least (Vargaftik et al., "DRIVE", NeurIPS 2021; Li et al., "THC", NSDI 2024).
 *
 * n floats become n floats: nothing is padded. Blocks of 2^log2_block begin at element
 * 0; where n is no multiple of that, one more transform, with signs of its own, runs
 * over the last 2^log2_block elements of the result, so that the rest is spread as
 * well. A vector shorter than a block has blocks of the largest power of two that it
 * holds.
 *
 *     | block 0 | block 1 | ... | block m-1 |rest|
 *                               |   |  the last  |   over results and the rest
 *
 * Sums: decoding the sum of transforms gives the sum of vectors where all have the same
 * n and the same struct trib_rht. NaN or Inf anywhere in a block make NaN of the block,
 * and of the last one if they overlap. Denormals and FLT_MAX: sums of 2^log2_block
 * elements come before the scale, so magnitudes above FLT_MAX / 2^log2_block may
 * overflow to Inf.
 */
#ifndef COMPRESS_TRANSFORM_HADAMARD_H
#define COMPRESS_TRANSFORM_HADAMARD_H

#include "compress/kernels/kernels.h"

enum { TRIB_RHT_LOG2_BLOCK = 10 }; /* the default */

struct trib_rht {
    uint64_t first; /* number of element 0 in the whole vector */
    uint32_t key[2];
    uint32_t last_key[2];
    int log2_block; /* 0 … TRIB_HADAMARD_LOG2_MAX */
};

/**
 * trib_rht_create - the transform that everyone with the same arguments has.
 *
 * seed, step  as of a struct trib_encode_key, but without its stream: the ranks share
 *             it
 * first       number of the first element in the whole vector; signs follow it
 */
struct trib_rht trib_rht_create(uint64_t seed, uint32_t step, uint64_t first,
                                int log2_block);

/**
 * trib_rht_forward, trib_rht_inverse - z of y, n floats each; each undoes the other up
 * to rounding, about log2_block * 2^-24 of the norm of a block.
 *
 * z        y itself or memory apart from it
 */
void trib_rht_forward(const struct trib_kernels *k, const struct trib_rht *t, float *z,
                      const float *y, size_t n);
void trib_rht_inverse(const struct trib_kernels *k, const struct trib_rht *t, float *z,
                      const float *y, size_t n);

#endif
