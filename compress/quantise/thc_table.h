/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The look-up tables of THC (Li et al., "THC: accelerating distributed deep learning
 * using tensor homomorphic compression", NSDI 2024). 16 symbols stand for some of the
 * points 0 … 30 of an even grid over [-t, t], denser where normally distributed values
 * are likely.
 *
 *     point T of the grid  =  the value (T - highest / 2) * (2 t / highest)
 *     t = the bound that a normal value exceeds with probability p, Phi^-1(1 - p / 2)
 *
 * A symbol has 4 bits. Symbols become points, points of several ranks are added as
 * integers, and the sum is decoded once. Sums of points of n ranks are at most n *
 * highest, so lanes of 8 bits suffice for 8 ranks, of 16 bits for 2184.
 */
#ifndef COMPRESS_QUANTISE_THC_TABLE_H
#define COMPRESS_QUANTISE_THC_TABLE_H

#include "compress/kernels/kernels.h"

enum { TRIB_THC_LOG2_P_MIN = 4, TRIB_THC_LOG2_P_MAX = 9, TRIB_THC_LOG2_P = 5 };

struct trib_thc_table {
    float bound; /* t */
    /* Mean squared error for values of deviation 1: the worst found among rotated
     * vectors of 1 to 8 elements; longer vectors have less. */
    float error;
    uint8_t highest;
    /* increasing; value[i] + value[15 - i] = highest */
    uint8_t value[TRIB_GRID_SYMBOLS];
};

/** trib_thc_table - return the table for p = 2^-log2_p; NULL if out of range. */
const struct trib_thc_table *trib_thc_table(int log2_p);

/**
 * trib_thc_grid - fill g for grid_encode of values with a standard deviation.
 *
 * deviation  2^-100 or more; for n values of norm l it is l / sqrt(n)
 * key      random key, as elsewhere: of rank, step and index of the first element
 */
void trib_thc_grid(const struct trib_thc_table *t, float deviation,
                   const uint32_t key[2], struct trib_grid *g);

/** trib_thc_step - return step: a value is (point - highest / 2) * step; a mean of n
 * points is (sum / n - highest / 2) * step. */
float trib_thc_step(const struct trib_thc_table *t, float deviation);

#endif
