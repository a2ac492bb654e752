/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Least squares by Householder reflections with column pivoting (Businger & Golub,
 * Numerische Mathematik 7, 1965), for matrices of a few dozen rows. The rank reveals
 * sets of answers that cannot be decoded.
 */
#ifndef TRAIN_CODED_PIVOTED_QR_H
#define TRAIN_CODED_PIVOTED_QR_H

#include <stddef.h>

/* A column counts as dependent if its remainder is below this share of the largest
 * column. A solution then loses at most 6 of the 16 digits of a double. */
#define TRIB_QR_TOLERANCE 1e-6

/* The matrix is row-major and is overwritten by its factors. */
struct trib_pivoted_qr {
    int rows, columns;
    double *a; /* [rows * columns] owned by the caller */
    double *scale; /* [columns] of the reflections */
    int *pivot; /* [columns] the column at each position */
    int rank;
};

/** trib_pivoted_qr_factor - factor the matrix, set qr->rank and return it. The other
 * fields are inputs. */
int trib_pivoted_qr_factor(struct trib_pivoted_qr *qr);

/**
 * trib_pivoted_qr_solve - compute the least squares solution of several right-hand
 * sides.
 *
 * Unknowns of dependent columns are 0.
 *
 * b        [rows * n] is overwritten; the residuals follow the first `rank` rows
 * x_out    [columns * n]
 */
void trib_pivoted_qr_solve(const struct trib_pivoted_qr *qr, double *b, size_t n,
                           double *x_out);

#endif
