/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The correct result of a collective: the input of each rank as a pure function of
 * (seed, rank, element), and the result computed plainly, in doubles or 64-bit
 * integers.
 */
#ifndef TESTS_COMM_ORACLE_H
#define TESTS_COMM_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary.h>

#include "perf/common/perf_op.h"

enum oracle_kind {
    ORACLE_EXACT, /* small integers in floats, any integer in integers: no
                      * rounding */
    ORACLE_REALS, /* floats in [-1, 1] */
    ORACLE_SPECIALS, /* as EXACT, with some NaN and infinities */
    ORACLE_KINDS,
};

struct oracle {
    enum oracle_kind kind;
    uint64_t seed;
    trib_dtype_t dtype;
    trib_op_t op;
    int size; /* ranks */
};

/* An expected number and its tolerance. */
struct oracle_answer {
    union perf_number value;
    double tolerance;
    double magnitude; /* sum of the absolute inputs, for bounds of codecs */
};

/** oracle_mix - return 64 well-mixed bits of a 64-bit number. */
uint64_t oracle_mix(uint64_t x);

/** oracle_input - return element i of the input of a rank, rounded to the dtype. */
union perf_number oracle_input(const struct oracle *o, int rank, size_t i);

/** oracle_fill - write elements first … first + n of the input of a rank to dst, with
 * any alignment. */
void oracle_fill(const struct oracle *o, int rank, size_t first, size_t n, void *dst);

/** oracle_reduced - return element i reduced over all ranks with the op. */
struct oracle_answer oracle_reduced(const struct oracle *o, size_t i);

/** oracle_copied - return element i of one rank, unchanged. */
struct oracle_answer oracle_copied(const struct oracle *o, int rank, size_t i);

/** oracle_rounded - return a number rounded to the dtype. */
union perf_number oracle_rounded(trib_dtype_t dtype, union perf_number x);

/** oracle_whole - return an integer. */
union perf_number oracle_whole(trib_dtype_t dtype, double x);

/** oracle_sum - return a + b, not rounded. */
union perf_number oracle_sum(trib_dtype_t dtype, union perf_number a,
                             union perf_number b);

/** oracle_equal - return true within the tolerance; NaN equals NaN. */
bool oracle_equal(trib_dtype_t dtype, const struct oracle_answer *expected,
                  union perf_number got);

/** oracle_hash - return a hash of bytes, never 0. */
uint64_t oracle_hash(const void *p, size_t bytes);

#endif
