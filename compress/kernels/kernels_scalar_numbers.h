/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics of a vector (vector_stats.h). Plain C with fixed trip counts, which the
 * compiler vectorises for each table. Squares are summed in float64 in 16 lanes, added
 * by halves, so all tables produce the same bits.
 */
#ifndef COMPRESS_KERNELS_KERNELS_SCALAR_NUMBERS_H
#define COMPRESS_KERNELS_KERNELS_SCALAR_NUMBERS_H

#include "compress/kernels/kernels_scalar.h"
#include "compress/vector_stats.h"

enum { NUMBERS_LANES = 16 };

/* Statistics per lane. Counts cover one part of the vector, so that 32 bits suffice. */
struct numbers_lanes {
    uint32_t most[NUMBERS_LANES];
    uint32_t bad[NUMBERS_LANES];
    uint32_t zeros[NUMBERS_LANES];
    double squares[NUMBERS_LANES];
};

/* Each loop does one kind of work, so that the compiler vectorises it. */
KERNEL void numbers_block(const float *restrict x, struct numbers_lanes *restrict l)
{
    uint32_t bits[NUMBERS_LANES];
    float kept[NUMBERS_LANES];

    memcpy(bits, x, sizeof bits);
    for (int i = 0; i < NUMBERS_LANES; i++) {
        const int32_t b = (int32_t)(bits[i] & 0x7fffffffu);
        const int32_t finite = -(int32_t)(b < 0x7f800000); /* -1 or 0 */
        const int32_t m = b & finite;
        bits[i] = (uint32_t)m;
        l->bad[i] += (uint32_t)(finite + 1);
        l->zeros[i] += (uint32_t)(b == 0);
        l->most[i] = m > (int32_t)l->most[i] ? (uint32_t)m : l->most[i];
    }
    memcpy(kept, bits, sizeof kept);
    for (int i = 0; i < NUMBERS_LANES; i++)
        l->squares[i] += (double)kept[i] * (double)kept[i];
}

static void numbers_part(const float *x, size_t n, struct numbers_lanes *l)
{
    float rest[NUMBERS_LANES];
    size_t i = 0;

    for (; i + NUMBERS_LANES <= n; i += NUMBERS_LANES)
        numbers_block(x + i, l);
    if (i == n)
        return;
    for (size_t k = 0; k < NUMBERS_LANES; k++)
        rest[k] = 0;
    memcpy(rest, x + i, (n - i) * sizeof *rest);
    numbers_block(rest, l);
    for (size_t k = n - i; k < NUMBERS_LANES; k++)
        l->zeros[k]--;
}

static void numbers_add(const float *x, size_t n, struct trib_numbers *out)
{
    enum { PART = 1 << 28 };
    struct numbers_lanes l = {.most = {0}};

    for (size_t i = 0; i < n; i += PART) {
        memset(l.bad, 0, sizeof l.bad);
        memset(l.zeros, 0, sizeof l.zeros);
        numbers_part(x + i, n - i < PART ? n - i : PART, &l);
        for (int k = 0; k < NUMBERS_LANES; k++) {
            out->not_finite += l.bad[k];
            out->zeros += l.zeros[k];
        }
    }
    for (int k = 0; k < NUMBERS_LANES; k++) {
        float largest;
        memcpy(&largest, &l.most[k], sizeof largest);
        out->largest = (double)largest > out->largest ? (double)largest : out->largest;
    }
    for (int half = NUMBERS_LANES / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++)
            l.squares[k] += l.squares[k + half];
    out->squares += l.squares[0];
    out->elements += n;
}

#endif
