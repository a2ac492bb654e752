/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels of exact sums (exact_sum.h). Plain C with fixed trip counts, which the
 * compiler vectorises for each table. All work on whole blocks; short blocks are padded
 * with zeros.
 */
#ifndef COMPRESS_KERNELS_KERNELS_SCALAR_EXACT_H
#define COMPRESS_KERNELS_KERNELS_SCALAR_EXACT_H

#include "compress/quantise/exact_sum.h"
#include "compress/kernels/kernels_scalar.h"

#define EXACT_INF 0x7f800000
#define EXACT_NAN 0x7fc00000

/* Two loops, because the compiler vectorises each but not both fused. bits_out: x
 * without signs of zeros and NaN payloads. */
static void exact_scan(const float *restrict x, uint32_t *restrict bits_out,
                       struct trib_exact_range *range_out)
{
    int32_t least = INT32_MAX, most = 0, highest = 0;
    for (size_t i = 0; i < TRIB_EXACT_BLOCK; i++) {
        int32_t b;
        memcpy(&b, x + i, sizeof b);
        const int32_t a = b & INT32_MAX, kept = a ? b : 0;
        bits_out[i] = (uint32_t)(a > EXACT_INF ? EXACT_NAN : kept);
    }
    for (size_t i = 0; i < TRIB_EXACT_BLOCK; i++) {
        const int32_t a = (int32_t)(bits_out[i] & INT32_MAX);
        const int32_t finite = a & -(int32_t)(a < EXACT_INF);
        /* 0 becomes the maximum, so it is ignored */
        const int32_t some = (finite - 1) & INT32_MAX;
        least = some < least ? some : least;
        most = finite > most ? finite : most;
        highest = a > highest ? a : highest;
    }
    /* denormals have the ulp of the smallest normal numbers */
    const unsigned low = ((unsigned)least + 1) >> 23, top = (unsigned)most >> 23;
    range_out->low = low ? low - 1 : 0;
    range_out->top = top ? top - 1 : 0;
    if (!most)
        range_out->low = TRIB_EXACT_TOP_MAX + 1;
    range_out->marked = highest >= EXACT_INF;
}

static void exact_add_floats(double *restrict acc, const float *restrict x)
{
    for (size_t i = 0; i < TRIB_EXACT_BLOCK; i++)
        acc[i] += (double)x[i];
}

static void exact_add_doubles(double *restrict acc, const double *restrict x)
{
    for (size_t i = 0; i < TRIB_EXACT_BLOCK; i++)
        acc[i] += x[i];
}

static void exact_round(float *restrict x, const double *restrict acc)
{
    for (size_t i = 0; i < TRIB_EXACT_BLOCK; i++)
        x[i] = (float)acc[i];
}

/* Double rounding: a float64 quotient exactly between two float32, or below the float32
 * normals, may round to the wrong float32. Return true if there is such a quotient. */
static bool exact_divide(float *restrict x, const double *restrict acc, double divisor)
{
    uint64_t doubtful = 0;
    for (size_t i = 0; i < TRIB_EXACT_BLOCK; i++) {
        const double q = acc[i] / divisor;
        uint64_t b;
        memcpy(&b, &q, sizeof b);
        const uint64_t rest = b & 0x1fffffff, magnitude = b & INT64_MAX;
        doubtful |= (uint64_t)(rest == 0x10000000) |
                    (uint64_t)(magnitude - 1 < 0x3810000000000000u - 1);
        x[i] = (float)q;
    }
    return doubtful != 0;
}

#endif
