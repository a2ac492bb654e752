/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part of kernels_scalar.h: integers on an even grid, and their sums.
 */
#ifndef COMPRESS_KERNELS_KERNELS_SCALAR_SHARED_SCALE_H
#define COMPRESS_KERNELS_KERNELS_SCALAR_SHARED_SCALE_H

#include <math.h>

#include "compress/kernels/kernels_scalar_codec.h"

/* out is 0 for 0 and -0 */
KERNEL void range_scalar(const float *x, size_t n, float out[2])
{
    float most = x[0], least = x[0];
    assert(n > 0);
    for (size_t i = 1; i < n; i++) {
        most = x[i] > most ? x[i] : most;
        least = x[i] < least ? x[i] : least;
    }
    out[0] = most + 0.0f;
    out[1] = 0.0f - least;
}

KERNEL bool shared_scale_is_valid(const struct trib_shared_scale_args *g)
{
    return g->low <= g->high && g->low + (float)g->offset >= 0;
}

KERNEL uint32_t shared_scale_code(float x, uint32_t i,
                                    const struct trib_shared_scale_args *g)
{
    const uint32_t h = (random_hash(i, g->key) & g->random_mask) | g->fixed;
    const float u = (float)(h >> 8) * 0x1p-24f;
    const float at = floorf(x * g->scale + g->shift + u);
    const float above = at > g->low ? at : g->low;
    return (uint32_t)(int32_t)(above < g->high ? above : g->high) + g->offset;
}

KERNEL void shared_scale_encode_u16_scalar_from(uint8_t *symbols, const float *x,
                                                size_t n, size_t first,
                                                const struct trib_shared_scale_args *g)
{
    assert(shared_scale_is_valid(g) && n <= UINT32_MAX);
    for (size_t i = first; i < n; i++) {
        const uint16_t symbol = (uint16_t)shared_scale_code(x[i], (uint32_t)i, g);
        memcpy(symbols + 2 * i, &symbol, sizeof symbol);
    }
}

KERNEL float shared_scale_value(uint32_t lane, const struct trib_shared_scale_args *g)
{
    return (float)(int32_t)(lane - g->middle) * g->unit + g->base;
}

SCALAR_CODEC(shared_scale, trib_shared_scale_args)

/* Residual of an element: x minus its symbol's value, or 0 if that is not finite. */
KERNEL float shared_scale_rest(float x, uint32_t symbol,
                               const struct trib_shared_scale_args *g)
{
    const float left = x - shared_scale_value(symbol, g);
    return magnitude_of(left) < 0x7f800000u ? left : 0.0f;
}

KERNEL void shared_scale_keep_scalar_from(uint8_t *symbols, float *x, size_t n,
                                          size_t first,
                                          const struct trib_shared_scale_args *g)
{
    assert(shared_scale_is_valid(g) && n <= UINT32_MAX);
    for (size_t i = first; i < n; i++) {
        symbols[i] = (uint8_t)shared_scale_code(x[i], (uint32_t)i, g);
        x[i] = shared_scale_rest(x[i], symbols[i], g);
    }
}

KERNEL void shared_scale_keep_u16_scalar_from(uint8_t *symbols, float *x, size_t n,
                                         size_t first,
                                         const struct trib_shared_scale_args *g)
{
    assert(shared_scale_is_valid(g) && n <= UINT32_MAX);
    for (size_t i = first; i < n; i++) {
        const uint16_t symbol = (uint16_t)shared_scale_code(x[i], (uint32_t)i, g);
        memcpy(symbols + 2 * i, &symbol, sizeof symbol);
        x[i] = shared_scale_rest(x[i], symbol, g);
    }
}

KERNEL uint32_t lane_u16(const uint8_t *lanes, size_t i)
{
    uint16_t lane;
    memcpy(&lane, lanes + 2 * i, sizeof lane);
    return lane;
}

KERNEL void shared_scale_decode_u16_scalar(float *x, const uint8_t *lanes, size_t n,
                                   const struct trib_shared_scale_args *g)
{
    for (size_t i = 0; i < n; i++)
        x[i] = shared_scale_value(lane_u16(lanes, i), g);
}

KERNEL void shared_scale_add_u16_scalar(float *acc, const uint8_t *lanes, size_t n,
                                const struct trib_shared_scale_args *g)
{
    for (size_t i = 0; i < n; i++)
        acc[i] += g->weight * shared_scale_value(lane_u16(lanes, i), g);
}

KERNEL void packed_ints_add_u8_scalar(uint16_t *sum, const uint8_t *lanes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] = (uint16_t)(sum[i] + lanes[i]);
}

/* Starts at lane `first`. */
KERNEL void packed_ints_sum_u8_scalar_from(uint8_t *sum,
                                      const struct trib_packed_ints_sum *s,
                                      size_t first)
{
    assert(s->n_src > 0);
    for (size_t i = first; i < s->n; i++) {
        uint16_t all = 0;
        for (size_t k = 0; k < s->n_src; k++)
            all = (uint16_t)(all + s->src[k][i]);
        memcpy(sum + 2 * i, &all, sizeof all);
    }
}

KERNEL void packed_ints_vote_scalar(uint8_t *lanes, size_t n, uint32_t more,
                                    uint32_t tie)
{
    assert(more <= INT32_MAX && tie <= INT32_MAX);
    for (size_t i = 0; i < n; i++)
        lanes[i] = (uint8_t)((lanes[i] >= more) + (lanes[i] >= tie));
}

KERNEL void packed_ints_add_u16_scalar(uint16_t *sum, const uint8_t *lanes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] = (uint16_t)(sum[i] + lane_u16(lanes, i));
}

#endif
