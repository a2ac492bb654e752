/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the noise of random rounding comes from: the hash of kernels.h, keyed per block of the
 * whole vector, so that it depends on neither chunk, bucket nor thread.
 */
#ifndef COMPRESS_NOISE_H
#define COMPRESS_NOISE_H

#include "base/rng.h"
#include "compress/codec.h"

enum { TRIB_NOISE_BLOCK = 4096 }; /* elements that share two keys */

/* Keys of the hash from element `index` of the whole vector on; returns how many elements
 * have these. */
static inline size_t trib_noise_at(const struct trib_encode_key *key, uint64_t index,
                                   uint32_t keys_out[2])
{
    const struct trib_rng rng = {key->seed, key->stream, key->step};
    const struct trib_rng_block r = trib_rng_draw4(rng, index / TRIB_NOISE_BLOCK);
    const uint32_t within = (uint32_t)(index % TRIB_NOISE_BLOCK);
    keys_out[0] = r.word[0] + within * 0x9e3779b9u; /* the hash goes on counting */
    keys_out[1] = r.word[1];
    return TRIB_NOISE_BLOCK - within;
}

#endif
