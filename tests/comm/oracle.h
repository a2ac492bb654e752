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

enum oracle_kind {
    ORACLE_EXACT,    /* small integers in floats, any integer in integers: no
                      * rounding */
    ORACLE_REALS,    /* floats in [-1, 1] */
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

/* A number of any dtype: floats are exact as doubles. */
struct oracle_value {
    double f;
    int64_t i; /* of integer dtypes */
};

/* An expected number and how far a result may be from it. */
struct oracle_answer {
    struct oracle_value value;
    double tolerance;
    double magnitude; /* sum of the absolute inputs, for bounds of codecs */
};

bool oracle_is_float(trib_dtype_t dtype);

/** oracle_epsilon - distance of 1.0 to the next number of a float dtype. */
double oracle_epsilon(trib_dtype_t dtype);

/** oracle_mix - 64 well-mixed bits of a 64-bit number. */
uint64_t oracle_mix(uint64_t x);

/** oracle_input - element i of rank's input, as the dtype can hold it. */
struct oracle_value oracle_input(const struct oracle *o, int rank, size_t i);

/** oracle_fill - elements first … first + n of rank's input to dst, of any
 * alignment. */
void oracle_fill(const struct oracle *o, int rank, size_t first, size_t n, void *dst);

/** oracle_reduced - element i summed over all ranks, as the op says. */
struct oracle_answer oracle_reduced(const struct oracle *o, size_t i);

/** oracle_copied - element i of one rank, to be had unchanged. */
struct oracle_answer oracle_copied(const struct oracle *o, int rank, size_t i);

struct oracle_value oracle_load(trib_dtype_t dtype, const void *p);
void oracle_store(trib_dtype_t dtype, struct oracle_value v, void *p);

/** oracle_equal - within the tolerance; NaN equals NaN. */
bool oracle_equal(trib_dtype_t dtype, const struct oracle_answer *expected,
                  struct oracle_value got);

/** oracle_hash - of bytes, never 0. */
uint64_t oracle_hash(const void *p, size_t bytes);

#endif
