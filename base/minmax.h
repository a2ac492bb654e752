/* SPDX-License-Identifier: BSD-3-Clause */
/* The smaller and the larger of two sizes. */
#ifndef BASE_MINMAX_H
#define BASE_MINMAX_H

#include <stddef.h>

static inline size_t trib_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t trib_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

#endif
