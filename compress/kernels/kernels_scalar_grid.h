/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part of kernels_scalar.h: stochastic rounding to the points of a table.
 */
#ifndef COMPRESS_KERNELS_KERNELS_SCALAR_GRID_H
#define COMPRESS_KERNELS_KERNELS_SCALAR_GRID_H

#include "compress/kernels/kernels_scalar_codec.h"

KERNEL uint8_t grid_symbol(float x, uint32_t i, const struct trib_grid *g)
{
    const float u = (float)(random_hash(i, g->key) >> 8) * 0x1p-24f;
    float p = x * g->scale + g->middle;
    p = p > 0.0f ? p : 0.0f;
    p = p < g->highest ? p : g->highest;
    const uint32_t cell = g->cell[(uint32_t)p];
    const float below = (float)(cell >> 8 & 0xffu), gap = (float)(cell >> 16);
    return (uint8_t)((cell & 0xffu) + (u * gap < p - below));
}

KERNEL void grid_encode_scalar_from(uint8_t *symbols, const float *x, size_t n,
                                    size_t first, const struct trib_grid *g)
{
    assert(n <= UINT32_MAX && g->value[0] == 0);
    assert(g->highest > 0 && g->highest < TRIB_GRID_POINTS_MAX);
    assert((float)g->value[TRIB_GRID_SYMBOLS - 1] == g->highest);
    for (size_t i = first; i < n; i++)
        symbols[i] = grid_symbol(x[i], (uint32_t)i, g);
}

KERNEL void grid_points_scalar(uint8_t *points, const uint8_t *symbols, size_t n,
                               const uint8_t value[TRIB_GRID_SYMBOLS])
{
    for (size_t i = 0; i < n; i++)
        points[i] = value[symbols[i] & 15];
}

#endif
