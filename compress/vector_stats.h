/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics of a vector: norm, largest magnitude, and counts of zeros and non-finite
 * elements.
 */
#ifndef COMPRESS_VECTOR_STATS_H
#define COMPRESS_VECTOR_STATS_H

#include <stddef.h>
#include <stdint.h>

#include <tributary/types.h>

struct trib_kernels;

struct trib_numbers {
    uint64_t elements;
    uint64_t not_finite; /* NaN and Inf; these count nowhere else */
    uint64_t zeros;
    double squares; /* sum of squares */
    double largest; /* magnitude */
};

/**
 * trib_numbers_add - add n elements to the statistics.
 *
 * x        any alignment; integers, f16 and bf16 are converted to float32
 */
void trib_numbers_add(const struct trib_kernels *kernels, trib_dtype_t dtype,
                      const void *x, size_t n, struct trib_numbers *out);

#endif
