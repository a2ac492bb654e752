/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a vector has (numbers.h). Plain C with fixed trip counts: the compiler makes vectors of it
 * for each table. Squares are summed in float64, in 16 lanes that are added by halves, so that all
 * tables have the same bits.
 */
#ifndef COMPRESS_KERNELS_SCALAR_NUMBERS_H
#define COMPRESS_KERNELS_SCALAR_NUMBERS_H

#include "compress/kernels_scalar.h"
#include "compress/numbers.h"

enum { NUMBERS_LANES = 16 };

/* Of NUMBERS_LANES elements. */
KERNEL void numbers_block(const float *restrict x, double *restrict squares,
                          struct trib_numbers *restrict out)
{
    uint32_t most = 0, bad = 0, zeros = 0;

    for (int i = 0; i < NUMBERS_LANES; i++) {
        uint32_t b;
        memcpy(&b, x + i, sizeof b);
        b &= 0x7fffffffu;
        const uint32_t finite = b < 0x7f800000u ? b : 0;
        bad += b >= 0x7f800000u;
        zeros += b == 0;
        most = finite > most ? finite : most;
    }
    for (int i = 0; i < NUMBERS_LANES; i++) {
        const float f = x[i] - x[i] == 0 ? x[i] : 0.0f; /* 0: not finite */
        squares[i] += (double)f * (double)f;
    }
    float largest;
    memcpy(&largest, &most, sizeof largest);
    out->largest = (double)largest > out->largest ? (double)largest : out->largest;
    out->not_finite += bad;
    out->zeros += zeros;
}

static void numbers_add(const float *x, size_t n, struct trib_numbers *out)
{
    double squares[NUMBERS_LANES] = {0};
    size_t i = 0;

    for (; i + NUMBERS_LANES <= n; i += NUMBERS_LANES)
        numbers_block(x + i, squares, out);
    if (i < n) {
        float rest[NUMBERS_LANES] = {0};
        memcpy(rest, x + i, (n - i) * sizeof *rest);
        numbers_block(rest, squares, out);
        out->zeros -= NUMBERS_LANES - (n - i);
    }
    for (int half = NUMBERS_LANES / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++)
            squares[k] += squares[k + half];
    out->squares += squares[0];
    out->elements += n;
}

#endif
