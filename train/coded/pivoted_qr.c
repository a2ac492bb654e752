/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/coded/pivoted_qr.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Return the squared norm of a column, from row k on. */
static double square_norm(const struct trib_pivoted_qr *qr, int column, int k)
{
    double sum = 0;

    for (int i = k; i < qr->rows; i++) {
        const double v = qr->a[i * qr->columns + column];
        sum += v * v;
    }
    return sum;
}

static double bring_largest(struct trib_pivoted_qr *qr, int k)
{
    double largest = -1;
    int at = k;

    for (int c = k; c < qr->columns; c++) {
        const double norm = square_norm(qr, c, k);
        if (norm > largest) {
            largest = norm;
            at = c;
        }
    }
    for (int i = 0; i < qr->rows; i++) {
        double *row = qr->a + i * qr->columns, swapped = row[k];
        row[k] = row[at];
        row[at] = swapped;
    }
    const int pivot = qr->pivot[k];
    qr->pivot[k] = qr->pivot[at];
    qr->pivot[at] = pivot;
    return sqrt(largest);
}

/* Apply the reflection 1 - scale v v', where v is 1 at k and stored below it. */
static void reflect(struct trib_pivoted_qr *qr, int k, double norm)
{
    const int n = qr->columns;
    double *a = qr->a;
    const double head = a[k * n + k], beta = head > 0 ? -norm : norm;

    qr->scale[k] = (beta - head) / beta;
    for (int i = k + 1; i < qr->rows; i++)
        a[i * n + k] /= head - beta;
    a[k * n + k] = beta;
    for (int c = k + 1; c < n; c++) {
        double dot = a[k * n + c];
        for (int i = k + 1; i < qr->rows; i++)
            dot += a[i * n + k] * a[i * n + c];
        dot *= qr->scale[k];
        a[k * n + c] -= dot;
        for (int i = k + 1; i < qr->rows; i++)
            a[i * n + c] -= dot * a[i * n + k];
    }
}

int trib_pivoted_qr_factor(struct trib_pivoted_qr *qr)
{
    double first = 0;

    assert(qr->rows >= 0 && qr->columns >= 0);
    for (int c = 0; c < qr->columns; c++)
        qr->pivot[c] = c;
    for (qr->rank = 0; qr->rank < qr->columns && qr->rank < qr->rows; qr->rank++) {
        const double norm = bring_largest(qr, qr->rank);
        first = qr->rank == 0 ? norm : first;
        if (!(norm > first * TRIB_QR_TOLERANCE) || norm == 0)
            break;
        reflect(qr, qr->rank, norm);
    }
    return qr->rank;
}

/* Add a multiple of a row to another row. */
static void add_row(double *restrict to, double factor, const double *restrict from,
                    size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += factor * from[i];
}

void trib_pivoted_qr_solve(const struct trib_pivoted_qr *qr, double *b, size_t n,
                           double *x_out)
{
    const int columns = qr->columns;
    double *dot = x_out; /* unused until the end */

    if (columns == 0)
        return;
    memset(x_out, 0, (size_t)columns * n * sizeof(*x_out));
    for (int k = 0; k < qr->rank; k++) {
        memcpy(dot, b + (size_t)k * n, n * sizeof(*dot));
        for (int i = k + 1; i < qr->rows; i++)
            add_row(dot, qr->a[i * columns + k], b + (size_t)i * n, n);
        add_row(b + (size_t)k * n, -qr->scale[k], dot, n);
        for (int i = k + 1; i < qr->rows; i++)
            add_row(b + (size_t)i * n, -qr->scale[k] * qr->a[i * columns + k], dot, n);
    }
    memset(dot, 0, n * sizeof(*dot));
    for (int k = qr->rank - 1; k >= 0; k--) {
        double *x = x_out + (size_t)qr->pivot[k] * n;
        memcpy(x, b + (size_t)k * n, n * sizeof(*x));
        for (int c = k + 1; c < qr->rank; c++)
            add_row(x, -qr->a[k * columns + c], x_out + (size_t)qr->pivot[c] * n, n);
        for (size_t i = 0; i < n; i++)
            x[i] /= qr->a[k * columns + k];
    }
}
