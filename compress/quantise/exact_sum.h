/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums without rounding: the encoding of the codec "exact", which adds without loss.
 *
 * Every float32 is a multiple of 2^-149. So a sum of them is a multiple too, and a wide
 * enough integer holds it (Kulisch and Miranker, Computer Arithmetic in Theory and
 * Practice, 1981). Integers add to the same value in any order, and the finished value
 * is rounded once. Demmel and Nguyen (ARITH 2013; IEEE Trans. Computers 64(7), 2015)
 * get order-independent sums with fewer bits, but not exact ones.
 *
 *     byte 0-3   number of contributions
 *     byte 4-7   1: the sum is finished, rounded, and nothing adds to it; else 0
 *     then       8 bytes for each block of 256 elements (the last may be shorter)
 *                    byte 0-3   offset of its numbers from the start, in bytes
 *                    byte 4     form
 *                    byte 5     low: every contribution is a multiple of 2^(low - 149)
 *                    byte 6     top: every contribution is below 2^(top + 24 - 149)
 *                    byte 7     1: some elements are marked NaN or Inf
 *     then       the numbers of each block, m elements, contiguous
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
 * and a sign. float64 has 53 such bits: up to that, additions in float64 are exact, and
 * vector units support them. Wider and marked sums get as many limbs as needed: 5 for
 * 65536 contributions of any magnitude. Form, low and top depend only on the set of
 * contributions, and so does every encoded bit.
 *
 * A rank encodes -0 as 0 and any NaN as 0x7fc00000. So a zero sum is +0, whatever the
 * signs of its zeros. A mean is the exact sum divided by the number of ranks, rounded
 * once; if too small for float32 it becomes a zero with its sign.
 */
#ifndef COMPRESS_QUANTISE_EXACT_SUM_H
#define COMPRESS_QUANTISE_EXACT_SUM_H

#include "compress/stages.h"

enum {
    TRIB_EXACT_BLOCK = 256,
    TRIB_EXACT_LIMBS = 5,
    TRIB_EXACT_DOUBLE_BITS = 53,
    TRIB_EXACT_TOP_MAX = 253, /* the largest exponent of a finite float32, minus one */
};

enum trib_exact_form {
    TRIB_EXACT_NOTHING,
    TRIB_EXACT_FLOATS,
    TRIB_EXACT_DOUBLES,
    TRIB_EXACT_FORMS = TRIB_EXACT_DOUBLES + TRIB_EXACT_LIMBS + 1,
};

enum { TRIB_EXACT_NAN = 1, TRIB_EXACT_PLUS_INF = 2, TRIB_EXACT_MINUS_INF = 4 };

/* The range of a block's finite non-zero elements; low > top: none. */
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

/** trib_exact_limbs_open - set to zero, with `limbs` limbs and the unit 2^(low -
 * 149). */
void trib_exact_limbs_open(struct trib_exact_limbs *s, unsigned limbs, unsigned low);

/**
 * trib_exact_limbs_add_floats, _add_doubles, _add_limbs - add m encoded numbers of a
 * block, at any address.
 *
 * s        its low is at most that of the numbers
 * returns  false if a number is not a multiple of the unit or exceeds the limbs: the
 *          input was invalid
 */
bool trib_exact_limbs_add_floats(struct trib_exact_limbs *s, const uint8_t *src,
                                 size_t m);
bool trib_exact_limbs_add_doubles(struct trib_exact_limbs *s, const uint8_t *src,
                                  size_t m);
bool trib_exact_limbs_add_limbs(struct trib_exact_limbs *s, const uint8_t *src,
                                size_t m, struct trib_exact_range range,
                                unsigned limbs);

/** trib_exact_limbs_round - divide by `divisor`, at least 1, and round to nearest
 * even. */
void trib_exact_limbs_round(const struct trib_exact_limbs *s, uint32_t divisor,
                            float *x, size_t m);

/** trib_exact_round_double - as trib_exact_limbs_round, for a float64 that is a
 * multiple of 2^-149. */
float trib_exact_round_double(double v, uint32_t divisor);

/* The operations of codec_ops.h. */
size_t trib_exact_bound(const struct trib_codec *c, size_t n);
size_t trib_exact_own_bound(const struct trib_codec *c, size_t n);
size_t trib_exact_encode(const struct trib_codec *c, const float *x, size_t n,
                         uint8_t *dst);
bool trib_exact_valid(const struct trib_codec *c, const uint8_t *src, size_t len,
                      size_t n);
trib_status_t trib_exact_merge(const struct trib_codec *c, const struct trib_merge *m,
                               uint8_t *dst, size_t *len_out);

#endif
