/* SPDX-License-Identifier: BSD-3-Clause */
/* Split a vector into weighted parts, and add parts to a vector. */
#ifndef COMPRESS_VECTORS_VECTOR_SPLIT_H
#define COMPRESS_VECTORS_VECTOR_SPLIT_H

#include <stddef.h>

#include <tributary/types.h>

struct trib_kernels;

struct trib_vector_part {
    void *x; /* [n] */
    double share; /* fraction of the vector */
};

/**
 * trib_vector_split - subtract weighted parts from x.
 *
 * Part k is share k of x, rounded to the dtype. x keeps the vector minus all parts, in
 * their order.
 * dtype    TRIB_F32, with shares rounded to float32, or TRIB_F64
 */
void trib_vector_split(const struct trib_kernels *kernels, trib_dtype_t dtype, void *x,
                       size_t n, const struct trib_vector_part *parts, int n_parts);

/** trib_vector_add - compute x += part elementwise; any dtype but TRIB_BOOL. */
void trib_vector_add(const struct trib_kernels *kernels, trib_dtype_t dtype, void *x,
                     const void *part, size_t n);

#endif
