/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operators that need all contributions at once: a few bad ones do not decide the
 * result.
 *
 *     TRIB_MEDIAN        element by element the middle one; of an even number the mean
 *                        of the two
 *     TRIB_TRIMMED_MEAN  without the floor(parameter * m) least and as many largest
 *                        ones, the mean
 *     TRIB_CLIPPED_MEAN  each element is cut to [-parameter, parameter], then the mean
 *
 *     paper      Yin, Chen, Ramchandran, Bartlett, ICML 2018: coordinate-wise median
 *                and trimmed mean; a bound on what each contributes: Karimireddy, He,
 *                Jaggi, ICML 2021, who clip the norm of the whole vector. Here it is
 *                each element, since nobody who sums sees more of a contribution than a
 *                chunk.
 *     NaN        is left out, as if the rank had given nothing for that element: m
 *                counts the others. Where all are NaN, the result is. Infinities are
 *                numbers like others.
 *     rounding   sums, also of float64, are in float64, of sorted numbers (clipped: in
 *                the order of ranks), and are rounded once
 */
#ifndef COMPRESS_ROBUST_OP_H
#define COMPRESS_ROBUST_OP_H

#include <stdbool.h>

#include "compress/kernels/kernels.h"

enum { TRIB_ROBUST_BLOCK = 64 /* elements at a time; each source has a row of them */ };

#define TRIB_TRIMMED_USUAL 0.1 /* the part that is cut off at each end where none is
                                * given */

struct trib_robust {
    const struct trib_kernels *kernels;
    trib_op_t op;
    trib_dtype_t dtype; /* f32, f64, f16 or bf16 */
    double parameter;
    void *rows; /* trib_robust_bytes, of the most sources; aligned for them */
};

/** trib_robust_is - is it one of these operators? */
bool trib_robust_is(trib_op_t op);

/** trib_robust_bytes - what work with so many sources needs. */
size_t trib_robust_bytes(trib_dtype_t dtype, int n_src);

/**
 * trib_robust_reduce - all r->n_dst places get the result of the sources.
 *
 * src      [n_src] of r->n elements each; any of them may be a destination, too
 * r        n, dst, n_dst; nothing else of it is read
 */
void trib_robust_reduce(const struct trib_robust *robust, const uint8_t *const *src,
                        int n_src, const struct trib_reduce_args *r);

/** trib_robust_reduce_f64 - the same of f64 alone: between the files of this. */
void trib_robust_reduce_f64(const struct trib_robust *robust, const uint8_t *const *src,
                            int n_src, const struct trib_reduce_args *r);

#endif
