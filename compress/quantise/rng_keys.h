/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys of the kernels' hash (kernels.h).
 */
#ifndef COMPRESS_QUANTISE_RNG_KEYS_H
#define COMPRESS_QUANTISE_RNG_KEYS_H

#include "base/rng.h"
#include "compress/codec.h"

enum { TRIB_RNG_KEYS_BLOCK = 4096 }; /* elements per pair of keys */

struct trib_rng_keys {
    struct trib_rng rng;
    uint64_t block; /* block of the current keys */
    uint32_t word[2];
};

static inline void trib_rng_keys_draw(struct trib_rng_keys *rng_keys, uint64_t block)
{
    const struct trib_rng_block r = trib_rng_draw4(rng_keys->rng, block);
    rng_keys->block = block;
    rng_keys->word[0] = r.word[0];
    rng_keys->word[1] = r.word[1];
}

/** trib_rng_keys_new - prepare keys for elements from index key->index of the whole
 * vector. */
static inline struct trib_rng_keys trib_rng_keys_new(const struct trib_encode_key *key)
{
    struct trib_rng_keys rng_keys = {.rng = {key->seed, key->stream, key->step}};
    trib_rng_keys_draw(&rng_keys, key->index / TRIB_RNG_KEYS_BLOCK);
    return rng_keys;
}

/**
 * trib_rng_keys_at - return the keys for elements from `index` of the whole vector.
 *
 * The keys do not depend on chunks or buckets.
 * returns  the number of elements with these keys
 */
static inline size_t trib_rng_keys_at(struct trib_rng_keys *rng_keys, uint64_t index,
                                   uint32_t keys_out[2])
{
    const uint32_t within = (uint32_t)(index % TRIB_RNG_KEYS_BLOCK);
    if (index / TRIB_RNG_KEYS_BLOCK != rng_keys->block)
        trib_rng_keys_draw(rng_keys, index / TRIB_RNG_KEYS_BLOCK);
    /* the hash continues to count */
    keys_out[0] = rng_keys->word[0] + within * 0x9e3779b9u;
    keys_out[1] = rng_keys->word[1];
    return TRIB_RNG_KEYS_BLOCK - within;
}

#endif
