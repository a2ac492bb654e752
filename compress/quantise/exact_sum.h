/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums without rounding: code words of the codec "exact", which add without any loss.
 *
 * Every float32 is a whole number of 2^-149. So a sum of them is a whole number, too,
 * and an integer that is wide enough holds it (Kulisch and Miranker, Computer
 * Arithmetic in Theory and Practice, 1981). Integers add in any order to the same
 * value, and the finished value is rounded once. Demmel and Nguyen (ARITH 2013; IEEE
 * Trans. Computers 64(7), 2015) reach sums that do not depend on the order in fewer
 * bits, but not exact ones.
 *
 *     byte 0-3   contributions in it
 *     byte 4-7   1: the sum is finished, rounded, and nothing adds to it; else 0
 *     then       8 bytes for each block of 256 elements (the last one may be shorter)
 *                    byte 0-3   where its numbers begin, in bytes from the start of the
 *                               word
 *                    byte 4     form
 *                    byte 5     low: every contribution is a multiple of 2^(low - 149)
 *                    byte 6     top: every contribution is below 2^(top + 24 - 149)
 *                    byte 7     1: some elements are marked NaN or Inf
 *     then       the numbers of each block, m elements, without holes
 *
 *     form 0     nothing: all elements are 0
 *     form 1     m float32: one contribution, or a finished sum
 *     form 2     m float64, which hold the sum exactly
 *     form 2 + L, L = 1 to 5
 *                m 64-bit limbs, the lowest of each element; then the next ones; the
 *                highest limb has the sign, as in two's complement. The unit is 2^(low
 *                - 149). With marks, m bytes follow: bit 0 NaN, bit 1 +Inf, bit 2 -Inf
 *
 * c contributions between low and top sum to at most top - low + 24 + ceil(log2 c) bits
 * and a sign. Up to 53 such bits a float64 has: additions of float64 are then exact,
 * and vector units have them. Wider sums, and marked ones, get as many limbs as they
 * need; with 65536 contributions of any magnitude these are 5. Form, low and top follow
 * from the set of contributions alone, and so does each bit of a word.
 *
 * A rank encodes -0 as 0 and any NaN as the one that 0x7fc00000 is. So a sum that is 0
 * is +0, whatever the signs of its zeros. A mean is the exact sum divided by the number
 * of ranks, rounded once; one that is too small for float32 becomes a zero with its
 * sign.
 */
#ifndef COMPRESS_QUANTISE_EXACT_SUM_H
#define COMPRESS_QUANTISE_EXACT_SUM_H

#include "compress/stages.h"

enum {
    TRIB_EXACT_BLOCK = 256,
    TRIB_EXACT_LIMBS = 5,
    TRIB_EXACT_DOUBLE_BITS = 53,
    TRIB_EXACT_TOP_MAX = 253, /* the largest exponent of a finite float32, less one */
};

enum trib_exact_form {
    TRIB_EXACT_NOTHING,
    TRIB_EXACT_FLOATS,
    TRIB_EXACT_DOUBLES,
    TRIB_EXACT_FORMS = TRIB_EXACT_DOUBLES + TRIB_EXACT_LIMBS + 1,
};

enum { TRIB_EXACT_NAN = 1, TRIB_EXACT_PLUS_INF = 2, TRIB_EXACT_MINUS_INF = 4 };

/* The range of a block's finite elements that are not 0; low > top: there are none. */
struct trib_exact_range {
    unsigned low;
    unsigned top;
    bool marked;
};

/* A block as limbs. */
struct trib_exact_limbs {
    unsigned limbs; /* in use */
    unsigned low;
    uint64_t limb[TRIB_EXACT_LIMBS][TRIB_EXACT_BLOCK];
    uint8_t marks[TRIB_EXACT_BLOCK];
};

/** trib_exact_limbs_open - zeros, of so many limbs of the unit 2^(low - 149). */
void trib_exact_limbs_open(struct trib_exact_limbs *s, unsigned limbs, unsigned low);

/**
 * trib_exact_limbs_add_floats and its like - add m numbers of a block of a word, at any
 * address.
 *
 * s        its low is at most that of the numbers
 * returns  false if a number is no multiple of the unit or beyond the limbs: the word
 *          was wrong
 */
bool trib_exact_limbs_add_floats(struct trib_exact_limbs *s, const uint8_t *src,
                                 size_t m);
bool trib_exact_limbs_add_doubles(struct trib_exact_limbs *s, const uint8_t *src,
                                  size_t m);
bool trib_exact_limbs_add_limbs(struct trib_exact_limbs *s, const uint8_t *src,
                                size_t m, struct trib_exact_range range,
                                unsigned limbs);

/** trib_exact_limbs_round - to nearest even, divided by `divisor`, at least 1,
 * before. */
void trib_exact_limbs_round(const struct trib_exact_limbs *s, uint32_t divisor,
                            float *x, size_t m);

/** trib_exact_round_double - the same of a float64 that is a multiple of 2^-149. */
float trib_exact_round_double(double v, uint32_t divisor);

/* The contract of codec.h. */
size_t trib_exact_bound(const struct trib_codec *c, size_t n);
size_t trib_exact_own_bound(size_t n);
size_t trib_exact_encode(const struct trib_codec *c, const float *x, size_t n,
                         uint8_t *dst);
bool trib_exact_valid(const struct trib_codec *c, const uint8_t *src, size_t len,
                      size_t n);
trib_status_t trib_exact_merge(const struct trib_codec *c, const struct trib_merge *m,
                               uint8_t *dst, size_t *len_out);

#endif
