/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the keys of the kernels' hash (kernels.h) come from.
 */
#ifndef COMPRESS_QUANTISE_RNG_KEYS_H
#define COMPRESS_QUANTISE_RNG_KEYS_H

#include "base/rng.h"
#include "compress/codec.h"

enum { TRIB_NOISE_BLOCK = 4096 }; /* elements that share two keys */

struct trib_noise {
    struct trib_rng rng;
    uint64_t block; /* whose words these are */
    uint32_t word[2];
};

static inline void trib_noise_draw(struct trib_noise *noise, uint64_t block)
{
    const struct trib_rng_block r = trib_rng_draw4(noise->rng, block);
    noise->block = block;
    noise->word[0] = r.word[0];
    noise->word[1] = r.word[1];
}

/** trib_noise_new - for elements from number key->index of the whole vector on. */
static inline struct trib_noise trib_noise_new(const struct trib_encode_key *key)
{
    struct trib_noise noise = {.rng = {key->seed, key->stream, key->step}};
    trib_noise_draw(&noise, key->index / TRIB_NOISE_BLOCK);
    return noise;
}

/**
 * trib_noise_at - the keys from element `index` of the whole vector on.
 *
 * So noise depends on neither chunk nor bucket.
 * returns  how many elements have these keys
 */
static inline size_t trib_noise_at(struct trib_noise *noise, uint64_t index,
                                   uint32_t keys_out[2])
{
    const uint32_t within = (uint32_t)(index % TRIB_NOISE_BLOCK);
    if (index / TRIB_NOISE_BLOCK != noise->block)
        trib_noise_draw(noise, index / TRIB_NOISE_BLOCK);
    keys_out[0] = noise->word[0] + within * 0x9e3779b9u; /* the hash goes on counting */
    keys_out[1] = noise->word[1];
    return TRIB_NOISE_BLOCK - within;
}

#endif
