/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/coded/coded_decode.h"

#include <stdlib.h>
#include <string.h>

#include "train/coded/pivoted_qr.h"

struct decoding {
    const struct trib_code_layout *l;
    const bool *here;
    const double *y;
    size_t rows;
    int *answer; /* [parts] the block of each answered partition; -1: missing */
    int *missing; /* [n_missing] */
    int *sums; /* [n_sums] blocks */
    int n_missing, n_sums;
};

static void sort_answers(struct decoding *d)
{
    const struct trib_code_layout *l = d->l;

    for (int p = 0; p < l->parts; p++)
        d->answer[p] = -1;
    for (int b = 0; b < l->n_blocks; b++) {
        if (l->holder[b] < 0 || !d->here[l->holder[b]])
            continue;
        if (trib_code_layout_is_part(l, b))
            d->answer[l->id[b]] = b;
        else
            d->sums[d->n_sums++] = b;
    }
    for (int p = 0; p < l->parts; p++)
        if (d->answer[p] < 0)
            d->missing[d->n_missing++] = p;
}

/* Subtract the known partitions from sum k; the rest is an equation of the missing
 * ones. */
static void set_equation(const struct decoding *d, int k, double *a, double *b)
{
    const struct trib_code_layout *l = d->l;
    const double *factors = l->real + d->sums[k] * l->parts;

    memcpy(b, d->y + (size_t)d->sums[k] * d->rows, d->rows * sizeof(*b));
    for (int p = 0; p < l->parts; p++) {
        const double *known = d->y + (size_t)d->answer[p] * d->rows;
        for (size_t i = 0; i < d->rows && d->answer[p] >= 0 && factors[p] != 0; i++)
            b[i] -= factors[p] * known[i];
    }
    for (int i = 0; i < d->n_missing; i++)
        a[i] = factors[d->missing[i]];
}

static bool solve(const struct decoding *d, double *x)
{
    const size_t n = (size_t)d->n_missing, m = (size_t)d->n_sums;
    struct trib_pivoted_qr qr = {.rows = d->n_sums, .columns = d->n_missing};
    double *b = malloc(m * d->rows * sizeof(*b));
    qr.a = malloc(m * n * sizeof(*qr.a));
    qr.scale = malloc(n * sizeof(*qr.scale));
    qr.pivot = malloc(n * sizeof(*qr.pivot));
    const bool well = b && qr.a && qr.scale && qr.pivot;

    for (size_t k = 0; k < m && well; k++)
        set_equation(d, (int)k, qr.a + k * n, b + k * d->rows);
    if (well) {
        trib_pivoted_qr_factor(&qr);
        trib_pivoted_qr_solve(&qr, b, d->rows, x);
    }
    free(b);
    free(qr.a);
    free(qr.scale);
    free(qr.pivot);
    return well;
}

static void copy(float *to, const double *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (float)from[i];
}

bool trib_coded_decode(const struct trib_code_layout *l, const bool *here,
                       const double *y, size_t rows, float *z, bool *solved_out)
{
    const size_t parts = (size_t)l->parts;
    struct decoding d = {.l = l, .here = here, .y = y, .rows = rows};
    d.answer = malloc(parts * sizeof(*d.answer));
    d.missing = malloc(parts * sizeof(*d.missing));
    d.sums = malloc((size_t)l->n_blocks * sizeof(*d.sums));
    bool well = d.answer && d.missing && d.sums;
    double *x = NULL;

    if (well)
        sort_answers(&d);
    *solved_out = d.n_missing > 0;
    if (well && d.n_missing) {
        x = malloc((size_t)d.n_missing * rows * sizeof(*x));
        well = x && solve(&d, x);
    }
    for (int p = 0, k = 0; p < l->parts && well; p++)
        copy(z + (size_t)p * rows,
             d.answer[p] >= 0 ? y + (size_t)d.answer[p] * rows : x + (size_t)k++ * rows,
             rows);
    free(d.answer);
    free(d.missing);
    free(d.sums);
    free(x);
    return well;
}
