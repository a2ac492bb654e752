/* SPDX-License-Identifier: BSD-3-Clause */
/* A vector that is split into weighted parts, and to which parts are added. */
#ifndef COMPRESS_VECTOR_SPLIT_H
#define COMPRESS_VECTOR_SPLIT_H

#include <stddef.h>

#include <tributary/types.h>

struct trib_kernels;

struct trib_vector_part {
    void *x; /* [n] */
    double share; /* of the vector */
};

/**
 * trib_vector_split - take parts out of a vector: part k is share k of it, rounded to
 * the dtype, and what is left is the vector less all parts, in their order.
 *
 * dtype    TRIB_F32, whose shares are rounded to float32, or TRIB_F64
 */
void trib_vector_split(const struct trib_kernels *kernels, trib_dtype_t dtype, void *x,
                       size_t n, const struct trib_vector_part *parts, int n_parts);

/** trib_vector_add - x += part, elementwise; any dtype but TRIB_BOOL. */
void trib_vector_add(const struct trib_kernels *kernels, trib_dtype_t dtype, void *x,
                     const void *part, size_t n);

#endif
