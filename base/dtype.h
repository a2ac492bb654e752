/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Predicates of dtypes and ops.
 */
#ifndef BASE_DTYPE_H
#define BASE_DTYPE_H

#include <stdbool.h>

#include <tributary/types.h>

bool trib_dtype_is_float(trib_dtype_t dtype);

/** trib_dtype_is_narrow - return true for floats narrower than float32; they are summed
 * in float32. */
bool trib_dtype_is_narrow(trib_dtype_t dtype);

/** trib_op_is_located - return true for ops on pairs of a value and its index. */
bool trib_op_is_located(trib_op_t op);

/** trib_op_is_logical - return true if results are 0 or 1. */
bool trib_op_is_logical(trib_op_t op);

#endif
