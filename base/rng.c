/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/rng.h"

/* Blocks are independent; side by side the compiler can put them into vectors. */
#define LANES 16

static void draw_lanes(struct trib_rng rng, uint64_t block, uint32_t out[4 * LANES])
{
    for (int i = 0; i < LANES; i++) {
        struct trib_rng_block b = trib_rng_draw4(rng, block + (uint64_t)i);
        for (int w = 0; w < 4; w++)
            out[4 * i + w] = b.word[w];
    }
}

void trib_rng_fill_u32(struct trib_rng rng, uint64_t index, uint32_t *dst, size_t n)
{
    size_t i = 0;

    for (; i < n && (index + i) % 4; i++)
        dst[i] = trib_rng_u32(rng, index + i);
    for (; n - i >= 4 * LANES; i += 4 * LANES)
        draw_lanes(rng, (index + i) / 4, dst + i);
    for (; i < n; i++)
        dst[i] = trib_rng_u32(rng, index + i);
}

void trib_rng_fill_float(struct trib_rng rng, uint64_t index, float *dst, size_t n)
{
    uint32_t bits[4 * LANES];

    while (n) {
        size_t part = n < 4 * LANES ? n : 4 * LANES;
        trib_rng_fill_u32(rng, index, bits, part);
        for (size_t i = 0; i < part; i++)
            dst[i] = trib_rng_to_float(bits[i]);
        index += part;
        dst += part;
        n -= part;
    }
}
