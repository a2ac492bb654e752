/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * k positions of n, the same on every rank: the block is cut into k strata of n/k
 * elements (rounded down or up), and one position is drawn from each.
 *
 *     stratum j  positions floor(j n / k) … floor((j+1) n / k) - 1
 *     position   first + floor(h(j) size / 2^32), h the hash of kernels.h with the keys
 *
 * Positions are distinct and increasing by construction. Each takes one hash, no
 * division and integers only, so all machines agree. Every element of a stratum of s
 * elements is drawn with probability 1/s, up to 2^-32 s.
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

/** trib_stratified_of - return a block's strata; the keys depend on seed, step and
 * index, not on the stream. */
struct trib_stratified trib_stratified_of(const struct trib_codec *c,
                                  const struct trib_selection *s);

/** trib_stratified_positions - write the positions of strata first … first + count - 1,
 * all below k. */
void trib_stratified_positions(const struct trib_kernels *kernels,
                           const struct trib_stratified *s, size_t first, size_t count,
                           uint32_t *positions_out);

/** trib_stratified_scale - multiply the values, from stratum 0, by the sizes of their
 * strata. */
void trib_stratified_scale(const struct trib_stratified *s, float *values);

#endif
