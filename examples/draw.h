/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers that every rank can reproduce: splitmix64 (Steele, Lea & Flood, OOPSLA
 * 2014). */
#ifndef TRIB_EXAMPLES_DRAW_H
#define TRIB_EXAMPLES_DRAW_H

#include <stddef.h>
#include <stdint.h>

/** draw_u64 - return 64 random bits. The initial state is the seed; any value is
 * valid. */
static inline uint64_t draw_u64(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/** draw_unit - return a number, uniform in [0, 1), with the 24 bits of a float. */
static inline float draw_unit(uint64_t *state)
{
    return (float)(draw_u64(state) >> 40) * 0x1p-24f;
}

/** draw_shuffle - shuffle the items (Fisher-Yates); the modulo bias is below count /
 * 2^64. */
static inline void draw_shuffle(uint32_t *items, size_t count, uint64_t seed)
{
    uint64_t state = seed;

    for (size_t left = count; left > 1; left--) {
        size_t pick = draw_u64(&state) % left;
        uint32_t item = items[left - 1];

        items[left - 1] = items[pick];
        items[pick] = item;
    }
}

#endif
