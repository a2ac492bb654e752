/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/models/orthonormal.h"

#include <math.h>
#include <stdbool.h>

/* A dependent column leaves only its rounding to float, about 2^-25 of it. */
static const double dependent = 0x1p-20;

/* in 8 lanes, element i in lane i % 8, then lanes added pairwise by halves */
static double dot(const double *a, const double *b, size_t n)
{
    double lane[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t j = 0; j < 8; j++)
            lane[j] += a[i + j] * b[i + j];
    for (size_t j = 0; i + j < n; j++)
        lane[j] += a[i + j] * b[i + j];
    for (size_t half = 4; half; half /= 2)
        for (size_t j = 0; j < half; j++)
            lane[j] += lane[j + half];
    return lane[0];
}

static void take_away(double *restrict column, const double *restrict unit, size_t n)
{
    const double part = dot(column, unit, n);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) /* a constant count, so that the compiler vectorises */
        for (size_t j = 0; j < 8; j++)
            column[i + j] -= part * unit[i + j];
    for (; i < n; i++)
        column[i] -= part * unit[i];
}

/* Orthonormalise column j of `columns` against the earlier ones, which are done; false:
 * it became 0. */
static bool finish_column(double *columns, size_t j, size_t n)
{
    double *column = columns + j * n;
    const double before = sqrt(dot(column, column, n));
    const bool any = before > 0;
    for (int pass = 0; any && pass < 2; pass++)
        for (size_t i = 0; i < j; i++)
            take_away(column, columns + i * n, n);
    const double after = any ? sqrt(dot(column, column, n)) : 0;
    const bool kept = after > dependent * before; /* false if either is NaN or Inf */
    for (size_t i = 0; i < n; i++)
        column[i] = kept ? column[i] / after : 0;
    return kept;
}

size_t trib_orthonormalise(float *x, size_t rows, size_t cols, double *work)
{
    size_t rank = 0;
    for (size_t j = 0; j < cols; j++) {
        for (size_t i = 0; i < rows; i++)
            work[j * rows + i] = (double)x[i * cols + j];
        rank += finish_column(work, j, rows);
        for (size_t i = 0; i < rows; i++)
            x[i * cols + j] = (float)work[j * rows + i];
    }
    return rank;
}
