/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part of kernels_scalar.h: matrix product.
 */
#ifndef COMPRESS_KERNELS_KERNELS_SCALAR_GEMM_H
#define COMPRESS_KERNELS_KERNELS_SCALAR_GEMM_H

#include "compress/kernels/kernels_scalar.h"

KERNEL void gemm_scalar(const struct trib_gemm *g)
{
    /* Rows do not overlap. */
    assert(g->ldc >= g->n || g->m <= 1);
    assert(g->lda >= (g->a_transposed ? g->m : g->k) || g->m <= 1 || g->k <= 1);
    assert(g->ldb >= (g->b_transposed ? g->k : g->n) || g->n <= 1 || g->k <= 1);
    const size_t a_row = g->a_transposed ? 1 : g->lda,
                 a_term = g->a_transposed ? g->lda : 1;
    const size_t b_term = g->b_transposed ? 1 : g->ldb,
                 b_col = g->b_transposed ? g->ldb : 1;
    for (size_t i = 0; i < g->m; i++) {
        float *row = g->c + i * g->ldc;
        for (size_t j = 0; j < g->n && !g->add; j++)
            row[j] = 0.0f;
        for (size_t p = 0; p < g->k; p++) {
            const float a = g->a[i * a_row + p * a_term];
            for (size_t j = 0; j < g->n; j++)
                row[j] = fmaf(a, g->b[p * b_term + j * b_col], row[j]);
        }
    }
}

#endif
