/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The predicates tell floats, and narrow floats, from other dtypes.
 */
#ifndef BASE_DTYPE_H
#define BASE_DTYPE_H

#include <stdbool.h>

#include <tributary/types.h>

bool trib_dtype_is_float(trib_dtype_t dtype);

/** trib_dtype_is_narrow - true if it is a float of fewer bits than float32, in which
 * it is summed. */
bool trib_dtype_is_narrow(trib_dtype_t dtype);

#endif
