/* SPDX-License-Identifier: BSD-3-Clause */
/* A vector times a number, divided by another one. */
#ifndef COMPRESS_VECTOR_SCALE_H
#define COMPRESS_VECTOR_SCALE_H

#include <stddef.h>

#include <tributary/types.h>

struct trib_kernels;

/**
 * trib_scale - dst[i] = src[i] * factor / divisor, for n elements.
 *
 * f64 is computed in double, all else in float32 and rounded once to the dtype.
 * dtype    a float of any width
 * dst      may be src, and may not overlap it otherwise; both of any alignment
 * divisor  0: no division
 */
void trib_scale(const struct trib_kernels *kernels, trib_dtype_t dtype, void *dst,
                const void *src, size_t n, double factor, double divisor);

/** trib_widen - n elements of a floating-point dtype as float32. */
void trib_widen(const struct trib_kernels *kernels, trib_dtype_t dtype, const void *src,
                size_t n, float *dst);

#endif
