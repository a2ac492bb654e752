/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The look-up tables of THC (Li et al., "THC: accelerating distributed deep learning
 * using tensor homomorphic compression", NSDI 2024): 16 symbols for some of the points
 * 0 … 30 of an even grid over [-t, t], more of them where values of a normal
 * distribution are likely.
 *
 *     point T of the grid  =  the value (T - highest / 2) * (2 t / highest)
 *     t = the bound that a normal value leaves with probability p, Phi^-1(1 - p / 2)
 *
 * A symbol has 4 bits. Symbols become points, points of several ranks are added as
 * integers, and the sum is decoded once: sums of points of n ranks are at most n *
 * highest, so lanes of 8 bits do for 8 ranks, of 16 bits for 2184.
 */
#ifndef COMPRESS_QUANTISE_THC_TABLE_H
#define COMPRESS_QUANTISE_THC_TABLE_H

#include "compress/kernels/kernels.h"

enum { TRIB_THC_LOG2_P_MIN = 4, TRIB_THC_LOG2_P_MAX = 9, TRIB_THC_LOG2_P = 5 };

struct trib_thc_table {
    float bound; /* t */
    /* mean squared error of values of deviation 1: the worst that was found among
     * rotated vectors of 1 to 8 elements, as of many elements it is less */
    float error;
    uint8_t highest;
    uint8_t value[TRIB_GRID_SYMBOLS]; /* rising; value[i] + value[15 - i] = highest */
};

/** trib_thc_table - for p = 2^-log2_p; NULL outside of the range above. */
const struct trib_thc_table *trib_thc_table(int log2_p);

/**
 * trib_thc_grid - what grid_encode wants for values of a standard deviation.
 *
 * deviation  2^-100 or more: for n values of the norm l it is l / sqrt(n)
 * key        as for noise anywhere: of rank, step and number of the first element
 */
void trib_thc_grid(const struct trib_thc_table *t, float deviation,
                   const uint32_t key[2], struct trib_grid *g);

/** trib_thc_step - a value by its point: (point - highest / 2) * step; a mean by its
 * sum of n points: (sum / n - highest / 2) * step. */
float trib_thc_step(const struct trib_thc_table *t, float deviation);

#endif
