/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * k positions of n that every rank draws alike: the block is cut into k strata of n/k
 * elements (rounded down or up), and of each one position is drawn.
 *
 *     stratum j  positions floor(j n / k) … floor((j+1) n / k) - 1
 *     position   first + floor(h(j) size / 2^32), h the hash of kernels.h with the keys
 *
 * Distinct and rising by construction, one hash each and no division, whole numbers
 * only: so the same on every machine. Every element of a stratum of s elements is drawn
 * with probability 1/s, to 2^-32 s.
 */
#ifndef COMPRESS_SPARSIFY_STRATIFIED_H
#define COMPRESS_SPARSIFY_STRATIFIED_H

#include <stddef.h>
#include <stdint.h>

struct trib_codec;
struct trib_encode_key;
struct trib_kernels;
struct trib_selection;

struct trib_stratified {
    size_t n; /* below 2^32 */
    size_t k; /* 1 … n */
    uint32_t keys[2];
};

/** trib_stratified_of - a block's: the keys are a function of seed, step and index, not
 * of the stream. */
struct trib_stratified trib_stratified_of(const struct trib_codec *c,
                                  const struct trib_selection *s);

/** trib_stratified_positions - of strata first … first + count - 1, all below k. */
void trib_stratified_positions(const struct trib_kernels *kernels,
                           const struct trib_stratified *s, size_t first, size_t count,
                           uint32_t *positions_out);

/** trib_stratified_scale - values *= the sizes of their strata, from stratum 0 on. */
void trib_stratified_scale(const struct trib_stratified *s, float *values);

#endif
