/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The right result of a collective: every rank's input as a pure function of (seed,
 * rank, element), and the result computed plainly, in doubles or 64-bit integers.
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
    ORACLE_SPECIALS, /* as EXACT, with NaN and infinities here and there */
    ORACLE_KINDS,
};

struct oracle {
    enum oracle_kind kind;
    uint64_t seed;
    trib_dtype_t dtype;
    trib_op_t op;
    int size; /* ranks */
};

/* An expected number and how far a result may be from it. */
struct oracle_answer {
    union perf_number value;
    double tolerance;
    double magnitude; /* sum of the absolute inputs, for bounds of codecs */
};

/** oracle_mix - 64 well-mixed bits of a 64-bit number. */
uint64_t oracle_mix(uint64_t x);

/** oracle_input - element i of rank's input, as the dtype can hold it. */
union perf_number oracle_input(const struct oracle *o, int rank, size_t i);

/** oracle_fill - elements first … first + n of rank's input to dst, of any
 * alignment. */
void oracle_fill(const struct oracle *o, int rank, size_t first, size_t n, void *dst);

/** oracle_reduced - element i summed over all ranks, as the op says. */
struct oracle_answer oracle_reduced(const struct oracle *o, size_t i);

/** oracle_copied - element i of one rank, to be had unchanged. */
struct oracle_answer oracle_copied(const struct oracle *o, int rank, size_t i);

/** oracle_rounded - return a number as the dtype can hold it. */
union perf_number oracle_rounded(trib_dtype_t dtype, union perf_number x);

/** oracle_whole - return a whole number. */
union perf_number oracle_whole(trib_dtype_t dtype, double x);

/** oracle_sum - return a + b, not rounded. */
union perf_number oracle_sum(trib_dtype_t dtype, union perf_number a,
                             union perf_number b);

/** oracle_equal - within the tolerance; NaN equals NaN. */
bool oracle_equal(trib_dtype_t dtype, const struct oracle_answer *expected,
                  union perf_number got);

/** oracle_hash - of bytes, never 0. */
uint64_t oracle_hash(const void *p, size_t bytes);

#endif
