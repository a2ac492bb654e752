/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Elements of any dtype as numbers, for the oracles of trib-perf and of the tests.
 */
#ifndef PERF_COMMON_PERF_NUMBER_H
#define PERF_COMMON_PERF_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary.h>

union perf_number {
    double f;
    uint64_t i; /* two's complement, so that sums wrap */
};

bool perf_number_is_integer(trib_dtype_t dtype);
bool perf_number_is_signed(trib_dtype_t dtype);

/** perf_number_store, perf_number_load - access element i of a vector at any
 * alignment. */
void perf_number_store(trib_dtype_t dtype, void *out, size_t i,
                       union perf_number number);
union perf_number perf_number_load(trib_dtype_t dtype, const void *in, size_t i);

/** perf_number_epsilon - return the spacing of floats at 1. */
double perf_number_epsilon(trib_dtype_t dtype);

/** perf_number_smallest - return the smallest float above 0, the least spacing. */
double perf_number_smallest(trib_dtype_t dtype);

#endif
