/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of the contributions to a block of elements. Included once by robust_op.c
 * (float32) and once by robust_f64.c (float64); ROBUST_REAL selects the type.
 */
#ifndef COMPRESS_VECTORS_ROBUST_ROWS_H
#define COMPRESS_VECTORS_ROBUST_ROWS_H

#include <math.h>
#include <string.h>

#include "compress/vectors/robust_op.h"

#ifndef ROBUST_REAL
#define ROBUST_REAL float
#endif

typedef ROBUST_REAL real;

enum { BLOCK = TRIB_ROBUST_BLOCK };

static void read_row(const struct trib_robust *robust, real *row, const uint8_t *src,
                     size_t n)
{
    if (robust->dtype == TRIB_F64)
        memcpy(row, src, n * sizeof(*row));
    else
        robust->kernels->to_f32[robust->dtype]((void *)row, src, n);
}

static void write_row(const struct trib_robust *robust, uint8_t *dst, const real *row,
                      size_t n)
{
    if (robust->dtype == TRIB_F64)
        memcpy(dst, row, n * sizeof(*row));
    else
        robust->kernels->from_f32[robust->dtype](dst, (const void *)row, n);
}

/* Read a block of all sources. NaN is not counted: it is replaced by Inf, which sorts
 * last, or by 0, which adds nothing. */
static void read_rows(const struct trib_robust *robust, const uint8_t *const *src,
                      int n_src, size_t first, size_t n, unsigned counted[BLOCK])
{
    const size_t element = trib_dtype_size(robust->dtype);
    const real nothing = robust->op == TRIB_CLIPPED_MEAN ? 0 : (real)INFINITY;

    for (size_t i = 0; i < BLOCK; i++)
        counted[i] = (unsigned)n_src;
    for (int s = 0; s < n_src; s++) {
        real *row = (real *)robust->rows + (size_t)s * BLOCK;
        memset(row, 0, BLOCK * sizeof(*row));
        read_row(robust, row, src[s] + first * element, n);
        for (size_t i = 0; i < BLOCK; i++) {
            const bool bad = isnan(row[i]) != 0;
            counted[i] -= bad;
            row[i] = bad ? nothing : row[i];
        }
    }
}

static void exchange(real *restrict low, real *restrict high)
{
    for (size_t i = 0; i < BLOCK; i++) {
        const real a = low[i], b = high[i];
        low[i] = b < a ? b : a;
        high[i] = b < a ? a : b;
    }
}

/* Batcher's merge exchange (Knuth, volume 3, algorithm 5.2.2M). The exchanges do not
 * depend on the numbers, so all columns of a block are sorted at once. */
static void sort_rows(real *rows, int n_src)
{
    const unsigned n = (unsigned)n_src;
    unsigned top = 1;

    while (top < n)
        top *= 2;
    for (unsigned p = top / 2; p > 0; p /= 2) {
        for (unsigned q = top / 2, r = 0, d = p;; d = q - p, q /= 2, r = p) {
            for (unsigned i = 0; i + d < n; i++)
                if ((i & p) == r)
                    exchange(rows + (size_t)i * BLOCK, rows + (size_t)(i + d) * BLOCK);
            if (q == p)
                break;
        }
    }
}

static double sum_of(const real *rows, unsigned first, unsigned end, size_t i)
{
    double sum = 0;

    for (unsigned s = first; s < end; s++)
        sum += (double)rows[(size_t)s * BLOCK + i];
    return sum;
}

static real median(const real *rows, unsigned m, size_t i)
{
    if (m % 2)
        return rows[(size_t)(m / 2) * BLOCK + i];
    const double sum = sum_of(rows, m / 2 - 1, m / 2 + 1, i);
    if (isinf(sum)) /* overflow of two large float64 */
        return rows[(size_t)(m / 2 - 1) * BLOCK + i] / 2 +
               rows[(size_t)(m / 2) * BLOCK + i] / 2;
    return (real)(sum / 2);
}

static real trimmed(const real *rows, unsigned m, size_t i, double part)
{
    const unsigned off = (unsigned)((double)m * part);

    return (real)(sum_of(rows, off, m - off, i) / (m - 2 * off));
}

static void clip_rows(real *rows, int n_src, real bound)
{
    for (size_t i = 0; i < (size_t)n_src * BLOCK; i++) {
        const real x = rows[i] > bound ? bound : rows[i];
        rows[i] = x < -bound ? -bound : x;
    }
}

static void reduce_block(const struct trib_robust *robust, int n_src,
                         const unsigned counted[BLOCK], real *x)
{
    const real bound = (real)robust->parameter;

    if (robust->op == TRIB_CLIPPED_MEAN)
        clip_rows(robust->rows, n_src, bound);
    else
        sort_rows(robust->rows, n_src);
    for (size_t i = 0; i < BLOCK; i++) {
        const unsigned m = counted[i];
        if (m == 0)
            x[i] = (real)NAN;
        else if (robust->op == TRIB_MEDIAN)
            x[i] = median(robust->rows, m, i);
        else if (robust->op == TRIB_TRIMMED_MEAN)
            x[i] = trimmed(robust->rows, m, i, robust->parameter);
        else
            x[i] = (real)(sum_of(robust->rows, 0, (unsigned)n_src, i) / m);
    }
}

static void reduce_rows(const struct trib_robust *robust, const uint8_t *const *src,
                        int n_src, const struct trib_reduce_args *r)
{
    const size_t element = trib_dtype_size(robust->dtype);
    unsigned counted[BLOCK];
    real x[BLOCK];

    for (size_t first = 0; first < r->n; first += BLOCK) {
        const size_t n = r->n - first < BLOCK ? r->n - first : BLOCK;
        read_rows(robust, src, n_src, first, n, counted);
        reduce_block(robust, n_src, counted, x);
        for (int d = 0; d < r->n_dst; d++)
            write_row(robust, (uint8_t *)r->dst[d] + first * element, x, n);
    }
}

#endif
