/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel
 * random numbers: as easy as 1, 2, 3", SC 2011).
 *
 * There is no state: the number is a function of (seed, stream, step, index). So all
 * ranks and threads draw the same numbers in any order, and a draw can be repeated.
 *
 *     counter  = index / 4 (64 bits) | step (32) | stream (32)
 *     key      = seed (64)
 *     the number at index is word index % 4 of the block
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

struct trib_rng {
    uint64_t seed;
    uint32_t stream; /* e.g. the rank */
    uint32_t step;   /* e.g. the operation number */
};

struct trib_rng_block {
    uint32_t word[4];
};

/** trib_rng_philox - the raw function: counter of four words, key of two. */
static inline struct trib_rng_block trib_rng_philox(struct trib_rng_block c,
                                                    uint32_t k0, uint32_t k1)
{
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xd2511f53u * c.word[0];
        uint64_t p1 = (uint64_t)0xcd9e8d57u * c.word[2];
        c = (struct trib_rng_block){
            {(uint32_t)(p1 >> 32) ^ c.word[1] ^ k0, (uint32_t)p1,
             (uint32_t)(p0 >> 32) ^ c.word[3] ^ k1, (uint32_t)p0}};
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    return c;
}

/** trib_rng_draw4 - return the numbers at 4 * block … 4 * block + 3. */
static inline struct trib_rng_block trib_rng_draw4(struct trib_rng rng, uint64_t block)
{
    struct trib_rng_block counter = {
        {(uint32_t)block, (uint32_t)(block >> 32), rng.step, rng.stream}};

    return trib_rng_philox(counter, (uint32_t)rng.seed, (uint32_t)(rng.seed >> 32));
}

#endif
