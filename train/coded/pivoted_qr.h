/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Least squares by Householder reflections with column pivoting (Businger & Golub,
 * Numerische Mathematik 7, 1965), of matrices of a few dozen rows. The pivots say how
 * many columns are independent, so a set of answers that cannot be decoded is seen.
 */
#ifndef TRAIN_CODED_PIVOTED_QR_H
#define TRAIN_CODED_PIVOTED_QR_H

#include <stddef.h>

/* A column counts as dependent if less than this share of the largest one is left of
 * it. A solution then loses at most 6 of the 16 digits of a double. */
#define TRIB_QR_TOLERANCE 1e-6

/* The matrix lies in rows, and is overwritten by its factors. */
struct trib_pivoted_qr {
    int rows, columns;
    double *a; /* [rows * columns] the caller's */
    double *scale; /* [columns] of the reflections */
    int *pivot; /* [columns] which column stands at each place */
    int rank;
};

/** trib_pivoted_qr_factor - factor; qr has all but rank. Returns the rank. */
int trib_pivoted_qr_factor(struct trib_pivoted_qr *qr);

/**
 * trib_pivoted_qr_solve - the least squares solution of several right-hand sides at
 * once.
 *
 * Unknowns of dependent columns are 0.
 * b        [rows * n] is overwritten; behind the first `rank` rows stand the residuals
 * x_out    [columns * n]
 */
void trib_pivoted_qr_solve(const struct trib_pivoted_qr *qr, double *b, size_t n,
                           double *x_out);

#endif
