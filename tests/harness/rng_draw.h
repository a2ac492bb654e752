/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Single random numbers for tests; the library draws them in blocks of four.
 */
#ifndef TESTS_HARNESS_RNG_DRAW_H
#define TESTS_HARNESS_RNG_DRAW_H

#include "base/rng.h"

/** draw_u32 - 32 random bits at `index`. */
static inline uint32_t draw_u32(struct trib_rng rng, uint64_t index)
{
    return trib_rng_draw4(rng, index / 4).word[index % 4];
}

/** draw_float - uniform in [0, 1) at `index`: a multiple of 2^-24. */
static inline float draw_float(struct trib_rng rng, uint64_t index)
{
    return (float)(draw_u32(rng, index) >> 8) * 0x1p-24f;
}

#endif
