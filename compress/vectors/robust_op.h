/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Robust reduction operators: they need all contributions at once, and a few bad
 * contributions do not determine the result.
 *
 *     TRIB_MEDIAN        elementwise median; for an even number the mean of the middle
 *                        two
 *     TRIB_TRIMMED_MEAN  elementwise mean without the floor(parameter * m) smallest and
 *                        as many largest
 *     TRIB_CLIPPED_MEAN  each element is clipped to [-parameter, parameter], then the
 *                        mean
 *
 *     paper      Yin, Chen, Ramchandran, Bartlett, ICML 2018: coordinate-wise median
 *                and trimmed mean. Karimireddy, He, Jaggi, ICML 2021, clip the norm of
 *                the whole vector; here each element is clipped, since a reduction sees
 *                only one chunk of a contribution.
 *     NaN        skipped, as if the rank had not contributed that element: m counts the
 *                others. The result is NaN if all are. Infinities are ordinary numbers.
 *     rounding   sums are computed in float64 (also of float64), in sorted order
 *                (clipped: in rank order), and rounded once
 */
#ifndef COMPRESS_VECTORS_ROBUST_OP_H
#define COMPRESS_VECTORS_ROBUST_OP_H

#include <stdbool.h>

#include "compress/kernels/kernels.h"

enum { TRIB_ROBUST_BLOCK = 64 /* elements at a time, one row per source */ };

#define TRIB_TRIMMED_USUAL 0.1 /* default fraction trimmed at each end */

struct trib_robust {
    const struct trib_kernels *kernels;
    trib_op_t op;
    trib_dtype_t dtype; /* f32, f64, f16 or bf16 */
    double parameter;
    void *rows; /* trib_robust_bytes for the largest number of sources, aligned */
};

/** trib_robust_is - return true if op is one of these operators. */
bool trib_robust_is(trib_op_t op);

/** trib_robust_bytes - return the work space needed for n_src sources. */
size_t trib_robust_bytes(trib_dtype_t dtype, int n_src);

/**
 * trib_robust_reduce - reduce the sources and write the result to all r->n_dst
 * destinations.
 *
 * src      [n_src] of r->n elements each; a source may also be a destination
 * r        only n, dst and n_dst are read
 */
void trib_robust_reduce(const struct trib_robust *robust, const uint8_t *const *src,
                        int n_src, const struct trib_reduce_args *r);

/** trib_robust_reduce_f64 - as trib_robust_reduce, for f64; private to robust_op.c and
 * robust_f64.c. */
void trib_robust_reduce_f64(const struct trib_robust *robust, const uint8_t *const *src,
                            int n_src, const struct trib_reduce_args *r);

#endif
