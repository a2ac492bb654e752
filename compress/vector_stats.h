/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics of a vector: its norm, its largest magnitude, and how much of it is no
 * number.
 */
#ifndef COMPRESS_VECTOR_STATS_H
#define COMPRESS_VECTOR_STATS_H

#include <stddef.h>
#include <stdint.h>

#include <tributary/types.h>

struct trib_kernels;

struct trib_numbers {
    uint64_t elements;
    uint64_t not_finite; /* NaN, Inf: of these nothing else is counted */
    uint64_t zeros;
    double squares; /* the sum of them */
    double largest; /* magnitude */
};

/**
 * trib_numbers_add - n more elements of the vector.
 *
 * x        any alignment. Integers, f16 and bf16 are looked at as float32
 */
void trib_numbers_add(const struct trib_kernels *kernels, trib_dtype_t dtype,
                      const void *x, size_t n, struct trib_numbers *out);

#endif
