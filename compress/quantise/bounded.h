/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Words of the codec "bound": no element of the sum is off by more than a bound.
 *
 * An element x becomes the integer q = round(x / step). The ranks have the same step,
 * so integers add, and the word of a sum is made of the sums of integers without any
 * float in between. What a rank rounds off is at most step / 2, and step is a little
 * less than 2 * bound / ranks (of a mean 2 * bound).
 *
 *     byte 0-3   contributions in it
 *     byte 4-7   0; once nothing is added any more, what the sum is divided by
 *     then       rel: a float32 for each bucket, the largest magnitude of all ranks
 *     then       the buckets, one behind the other. Of m elements:
 *                    byte 0     form
 *     form 0     nothing: all elements are 0
 *     form 1     byte 1-4   the integer before the first one, as if there were one
 *                then       a head for each block of 32 elements (the last may be
 *                           shorter, and is filled up)
 *                then       the codes of each block
 *     form 2     m float32: an element is not finite, or too large for an integer; or
 *                the sum of all ranks of such a bucket, rounded (and divided) once
 *     form 3     m float64: a sum that is not finished of such a bucket, of three ranks
 *                or more (the half of a sum of two is exact), or of integers that
 *                are beyond 32 bits together
 *
 * A block has the differences d between an integer and the one before it (Lorenzo's
 * predictor of first order), modulo 2^32, as codes d - base of w bits. The head says
 * which:
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
    TRIB_BOUNDED_BASES = 64, /* heads from here on have their base in the word */
    TRIB_BOUNDED_CENTRED = 96, /* heads from here on have a base of half the range */
    TRIB_BOUNDED_HEADS = 128,
};

/* The integers of a bucket. */
struct trib_bounded_grid {
    double step;
    double per_step; /* 1 / step */
    float largest; /* of the magnitudes that have an integer */
};

/** trib_bounded_words - 32-bit words of a block's codes, base included. */
static inline unsigned trib_bounded_words(unsigned head)
{
    return head < TRIB_BOUNDED_BASES     ? head % 4
           : head < TRIB_BOUNDED_CENTRED ? head - TRIB_BOUNDED_BASES + 1
                                         : head - (TRIB_BOUNDED_CENTRED - 1);
}

#endif
