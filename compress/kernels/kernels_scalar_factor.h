/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part of kernels_scalar.h: products of matrix rows and a few factors.
 */
#ifndef COMPRESS_KERNELS_KERNELS_SCALAR_FACTOR_H
#define COMPRESS_KERNELS_KERNELS_SCALAR_FACTOR_H

#include "compress/kernels/kernels_scalar.h"
#include "compress/kernels/kernels_scalar_codec.h"

/* Return one row times factor k. The last lanes are padded with zeros. */
KERNEL float row_times_scalar(const float *row, const struct trib_factors *f, size_t k)
{
    const float *factor = f->factors + k * f->ld;
    float lane[SQUARE_LANES] = {0};
    for (size_t i = 0; i < f->cols || i % SQUARE_LANES; i++)
        lane[i % SQUARE_LANES] = fmaf(i < f->cols ? row[i] : 0.0f,
                                      i < f->cols ? factor[i] : 0.0f,
                                      lane[i % SQUARE_LANES]);
    return fold_lanes(lane);
}

KERNEL void project_rows_scalar(float *m, const float *x, const struct trib_factors *f,
                                float *out)
{
    assert(f->ld >= f->cols || f->rank <= 1);
    for (size_t r = 0; r < f->rows; r++, m += f->cols) {
        for (size_t i = 0; x && i < f->cols; i++)
            m[i] += x[r * f->cols + i];
        for (size_t k = 0; k < f->rank; k++)
            out[r * f->rank + k] = row_times_scalar(m, f, k);
    }
}

/* Subtract from elements `from` and up of a row. */
KERNEL void take_row_scalar(float *row, size_t from, const struct trib_factors *f,
                            const float *weights)
{
    for (size_t i = from; i < f->cols; i++) {
        float sum = 0.0f;
        for (size_t k = 0; k < f->rank; k++)
            sum = fmaf(weights[k], f->factors[k * f->ld + i], sum);
        row[i] -= sum;
        row[i] = isfinite(row[i]) ? row[i] : 0.0f;
    }
}

KERNEL void take_rows_scalar(float *m, const struct trib_factors *f,
                             const float *weights)
{
    assert(f->ld >= f->cols || f->rank <= 1);
    for (size_t r = 0; r < f->rows; r++)
        take_row_scalar(m + r * f->cols, 0, f, weights + r * f->rank);
}

#endif
