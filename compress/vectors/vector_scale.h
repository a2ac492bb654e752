/* SPDX-License-Identifier: BSD-3-Clause */
/* Scale a vector by a quotient, and convert a vector to float32. */
#ifndef COMPRESS_VECTORS_VECTOR_SCALE_H
#define COMPRESS_VECTORS_VECTOR_SCALE_H

#include <stddef.h>

#include <tributary/types.h>

struct trib_kernels;

/**
 * trib_scale - compute dst[i] = src[i] * factor / divisor for n elements.
 *
 * f64 is computed in double, all other dtypes in float32, rounded once to the dtype.
 * dtype    any floating-point dtype
 * dst      may equal src but not overlap it otherwise; any alignment
 * divisor  0: do not divide
 */
void trib_scale(const struct trib_kernels *kernels, trib_dtype_t dtype, void *dst,
                const void *src, size_t n, double factor, double divisor);

/** trib_widen - convert n elements of a floating-point dtype to float32. */
void trib_widen(const struct trib_kernels *kernels, trib_dtype_t dtype, const void *src,
                size_t n, float *dst);

#endif
