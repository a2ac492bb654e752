/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arithmetic of the ops on single elements, for the oracles of trib-perf and of the
 * tests. Robust means are not included.
 */
#ifndef PERF_COMMON_PERF_OP_H
#define PERF_COMMON_PERF_OP_H

#include "perf/common/perf_number.h"

/** perf_op_is_located - return true if op takes pairs of a value and its index. */
static inline bool perf_op_is_located(trib_op_t op)
{
    return op == TRIB_MINLOC || op == TRIB_MAXLOC;
}

/** perf_op_is_truth - return true if only the truth value of an element matters. */
static inline bool perf_op_is_truth(trib_dtype_t dtype, trib_op_t op)
{
    return dtype == TRIB_BOOL || (op >= TRIB_LAND && op <= TRIB_LXOR);
}

/** perf_op_operand - return an input as perf_op_combine takes it: 0 or 1 if only its
 * truth value matters. */
union perf_number perf_op_operand(trib_dtype_t dtype, trib_op_t op,
                                  union perf_number input);

/** perf_op_combine - return a op b. TRIB_MEAN adds. */
union perf_number perf_op_combine(trib_dtype_t dtype, trib_op_t op, union perf_number a,
                                  union perf_number b);

/** perf_op_finish - wrap the combined inputs to the dtype, and divide for
 * TRIB_MEAN. */
union perf_number perf_op_finish(trib_dtype_t dtype, trib_op_t op,
                                 union perf_number combined, int ranks);

/** perf_op_precedes - return true if pair a of TRIB_MINLOC or TRIB_MAXLOC wins over
 * pair b. NaN wins over any number. */
bool perf_op_precedes(trib_dtype_t dtype, trib_op_t op, const void *a, const void *b);

/**
 * perf_op_magnitude - return the scale of rounding errors of a float result.
 *
 * sum      of the absolute values of all inputs
 */
double perf_op_magnitude(trib_op_t op, double result, double sum, int ranks);

/** perf_op_tolerance - return the most that rounding may change a result of such a
 * magnitude. */
double perf_op_tolerance(trib_dtype_t dtype, double magnitude, int ranks);

#endif
