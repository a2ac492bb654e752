/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encoding of the codec "bound": no element of the sum is off by more than a bound.
 *
 * An element x becomes the integer q = round(x / step). All ranks have the same step,
 * so integers add, and a sum is encoded from the sums of integers without floats in
 * between. The rounding error of a rank is at most step / 2, and step is slightly less
 * than 2 * bound / ranks (for a mean 2 * bound).
 *
 *     byte 0-3   number of contributions
 *     byte 4-7   0; in a finished sum the divisor of the sum
 *     then       rel: a float32 for each bucket, the largest magnitude of all ranks
 *     then       consecutive buckets. With m elements:
 *                    byte 0     form
 *     form 0     nothing: all elements are 0
 *     form 1     byte 1-4   the integer before the first one, as if there were one
 *                then       a head for each block of 32 elements (a shorter last block
 *                           is padded)
 *                then       the codes of each block
 *     form 2     m float32: an element is not finite or too large for an integer. Also
 *                the sum of all ranks of such a bucket, rounded (and divided) once
 *     form 3     m float64: a partial sum of such a bucket if there are three ranks or
 *                more (of two ranks it is one contribution, exact as float32), or of
 *                integers whose sum exceeds 32 bits
 *
 * A block stores the differences d between consecutive integers (Lorenzo predictor of
 * first order), modulo 2^32, as codes d - base of w bits. The head defines w and base:
 *
 *     0-63       w = head % 4, base = head / 4 - 8
 *     64-95      w = head - 64, base: 4 bytes before the codes
 *     96-127     w = head - 95, base = -2^(w-1)
 *
 * Codes are w planes of 4 bytes: bit i of plane k is bit k of the code of element i.
 *
 * Papers: Di and Cappello, IPDPS 2016 (prediction, then quantisation with an error
 * bound); Huang et al., cuSZp, SC 2023 (integers first, differences, widths by block);
 * Huang et al., hZCCL, SC 2024 (sums of compressed data).
 */
#ifndef COMPRESS_QUANTISE_BOUNDED_H
#define COMPRESS_QUANTISE_BOUNDED_H

#include "compress/stages.h"

enum {
    TRIB_BOUNDED_BLOCK = 32,
    TRIB_BOUNDED_BUCKET_MAX = 2048,
    TRIB_BOUNDED_BASES = 64, /* from this head on, the base precedes the codes */
    TRIB_BOUNDED_CENTRED = 96, /* from this head on, the base is minus half the range */
    TRIB_BOUNDED_HEADS = 128,
};

/* The grid of a bucket's integers. */
struct trib_bounded_grid {
    double step;
    double per_step; /* 1 / step */
    float largest; /* largest magnitude that has an integer */
};

/** trib_bounded_words - return the 32-bit words of a block's codes, base included. */
static inline unsigned trib_bounded_words(unsigned head)
{
    return head < TRIB_BOUNDED_BASES     ? head % 4
           : head < TRIB_BOUNDED_CENTRED ? head - TRIB_BOUNDED_BASES + 1
                                         : head - (TRIB_BOUNDED_CENTRED - 1);
}

#endif
