/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Third part of kernels_scalar.h: kernels of selections.
 */
#ifndef COMPRESS_KERNELS_KERNELS_SCALAR_SELECT_H
#define COMPRESS_KERNELS_KERNELS_SCALAR_SELECT_H

#include "compress/kernels/kernels_scalar_codec.h"

KERNEL size_t add_select_scalar(float *acc, const float *x, float *zeros, size_t n,
                                uint32_t threshold, uint32_t *positions_out)
{
    size_t m = 0;
    assert(n <= UINT32_MAX);
    for (size_t i = 0; i < n; i++) {
        acc[i] += x[i];
        if (zeros)
            zeros[i] = 0.0f;
        positions_out[m] = (uint32_t)i;
        m += magnitude_of(acc[i]) >= threshold;
    }
    return m;
}

KERNEL uint32_t add_max_scalar(float *acc, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        acc[i] += x[i];
    return max_magnitude_scalar(acc, n);
}

KERNEL size_t select_ahead_scalar_from(const float *g, const float *d, size_t from,
                                       size_t n, const struct trib_ahead *a,
                                       uint32_t *positions_out)
{
    size_t m = 0;
    assert(n <= UINT32_MAX - a->first); /* positions have 32 bits */
    for (size_t i = from; i < n; i++) {
        const float ahead = a->factor * d[i];
        positions_out[m] = a->first + (uint32_t)i;
        m += magnitude_of(g[i] + ahead) >= a->least && magnitude_of(g[i]) > 0;
    }
    return m;
}

KERNEL bool any_nonzero_scalar(const float *x, size_t n)
{
    uint32_t any = 0;
    for (size_t i = 0; i < n; i++)
        any |= magnitude_of(x[i]);
    return any;
}

KERNEL size_t blocks_nonzero_scalar(const float *x, size_t n, size_t block,
                                    uint32_t *numbers_out)
{
    size_t m = 0;
    assert(block > 0 && n / block <= UINT32_MAX);
    for (size_t at = 0; at < n; at += block)
        if (any_nonzero_scalar(x + at, n - at < block ? n - at : block))
            numbers_out[m++] = (uint32_t)(at / block);
    return m;
}

#endif
