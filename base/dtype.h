/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Predicates of dtypes and ops.
 */
#ifndef BASE_DTYPE_H
#define BASE_DTYPE_H

#include <stdbool.h>

#include <tributary/types.h>

bool trib_dtype_is_float(trib_dtype_t dtype);

/** trib_dtype_is_narrow - true if it is a float of fewer bits than float32, in which
 * it is summed. */
bool trib_dtype_is_narrow(trib_dtype_t dtype);

/** trib_op_is_located - true if it is of pairs of a value and its index. */
bool trib_op_is_located(trib_op_t op);

/** trib_op_is_logical - true if its results are 0 or 1. */
bool trib_op_is_logical(trib_op_t op);

#endif
