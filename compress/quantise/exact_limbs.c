/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multi-limb integers: the blocks of an exact sum (exact_sum.h).
 *
 * Limbs of the same significance are contiguous. Input may come from an untrusted peer:
 * no input causes an access past the array.
 */
#include "compress/quantise/exact_sum.h"

#include <assert.h>
#include <string.h>

enum { MANTISSA = 23, EXPONENT_ALL = 255, LIMB_BITS = 64 };
enum { DOUBLE_MANTISSA = 52, DOUBLE_EXPONENT_ALL = 2047, DOUBLE_UNIT = 1075 };
enum { UNIT = 149 }; /* the smallest float32 is 2^-149 */

__extension__ typedef unsigned __int128 wide;

void trib_exact_limbs_open(struct trib_exact_limbs *s, unsigned limbs, unsigned low)
{
    assert(limbs > 0 && limbs <= TRIB_EXACT_LIMBS);
    s->limbs = limbs;
    s->low = low;
    memset(s->limb, 0, limbs * sizeof s->limb[0]);
    memset(s->marks, 0, sizeof s->marks);
}

/* Add magnitude * 2^shift to element i, or subtract it if negative. Limbs past those in
 * use are discarded. */
static inline void add_at(struct trib_exact_limbs *s, size_t i, uint64_t magnitude,
                          unsigned shift, bool negative)
{
    if (s->limbs <= 2) { /* fast path: nearly all sums that exceed float64 */
        const wide add = (wide)magnitude << shift;
        wide v = s->limb[0][i] | (wide)(s->limbs > 1 ? s->limb[1][i] : 0) << LIMB_BITS;
        v = negative ? v - add : v + add;
        s->limb[0][i] = (uint64_t)v;
        if (s->limbs > 1)
            s->limb[1][i] = (uint64_t)(v >> LIMB_BITS);
        return;
    }
    const uint64_t all = negative ? UINT64_MAX : 0;
    const unsigned first = shift / LIMB_BITS, by = shift % LIMB_BITS;
    const uint64_t part[2] = {magnitude << by, by ? magnitude >> (LIMB_BITS - by) : 0};
    uint64_t carry = negative;

    for (unsigned k = first; k < s->limbs; k++) {
        const uint64_t add = (k - first < 2 ? part[k - first] : 0) ^ all;
        const uint64_t sum = s->limb[k][i] + add;
        const uint64_t whole = sum + carry;
        carry = (sum < add) | (whole < sum);
        s->limb[k][i] = whole;
    }
}

static uint8_t mark_of(uint32_t bits)
{
    if (bits << 1 != (uint32_t)EXPONENT_ALL << (MANTISSA + 1))
        return TRIB_EXACT_NAN;
    return bits >> 31 ? TRIB_EXACT_MINUS_INF : TRIB_EXACT_PLUS_INF;
}

bool trib_exact_limbs_add_floats(struct trib_exact_limbs *s, const uint8_t *src,
                                 size_t m)
{
    const unsigned room = s->limbs * LIMB_BITS;

    for (size_t i = 0; i < m; i++) {
        uint32_t b;
        memcpy(&b, src + i * sizeof b, sizeof b);
        const unsigned exponent = b >> MANTISSA & EXPONENT_ALL;
        const uint32_t fraction = b & ((1u << MANTISSA) - 1);
        const unsigned unit = exponent ? exponent - 1 : 0;
        if (exponent == EXPONENT_ALL) {
            s->marks[i] |= mark_of(b);
            continue;
        }
        if (!exponent && !fraction)
            continue;
        if (unit < s->low || unit - s->low + MANTISSA + 2 > room)
            return false;
        add_at(s, i, exponent ? fraction | 1u << MANTISSA : fraction, unit - s->low,
               b >> 31);
    }
    return true;
}

bool trib_exact_limbs_add_doubles(struct trib_exact_limbs *s, const uint8_t *src,
                                  size_t m)
{
    const int room = (int)s->limbs * LIMB_BITS;

    for (size_t i = 0; i < m; i++) {
        uint64_t b;
        memcpy(&b, src + i * sizeof b, sizeof b);
        const int exponent = (int)(b >> DOUBLE_MANTISSA & DOUBLE_EXPONENT_ALL);
        uint64_t mantissa =
            (b & ((1ull << DOUBLE_MANTISSA) - 1)) | 1ull << DOUBLE_MANTISSA;
        if (b << 1 == 0)
            continue;
        if (exponent == 0 || exponent == DOUBLE_EXPONENT_ALL)
            return false; /* not a sum of float32 */
        const int zeros = __builtin_ctzll(mantissa);
        const int shift = exponent - DOUBLE_UNIT + UNIT - (int)s->low + zeros;
        if (shift < 0 || shift + DOUBLE_MANTISSA + 1 - zeros + 1 > room)
            return false;
        mantissa >>= zeros;
        add_at(s, i, mantissa, (unsigned)shift, b >> 63);
    }
    return true;
}

bool trib_exact_limbs_add_limbs(struct trib_exact_limbs *s, const uint8_t *src,
                                size_t m, struct trib_exact_range range, unsigned limbs)
{
    assert(limbs > 0 && limbs <= TRIB_EXACT_LIMBS);
    if (range.low < s->low || (range.low - s->low) / LIMB_BITS >= s->limbs)
        return false;
    const unsigned first = (range.low - s->low) / LIMB_BITS;
    const unsigned by = (range.low - s->low) % LIMB_BITS;

    for (size_t i = 0; i < m; i++) {
        uint64_t before = 0, carry = 0, sign = 0;
        for (unsigned k = first; k < s->limbs; k++) {
            uint64_t next = sign;
            if (k - first < limbs)
                memcpy(&next, src + ((k - first) * m + i) * sizeof next, sizeof next);
            if (k - first + 1 == limbs)
                sign = next >> (LIMB_BITS - 1) ? UINT64_MAX : 0;
            const uint64_t add = by ? next << by | before >> (LIMB_BITS - by) : next;
            const uint64_t sum = s->limb[k][i] + add, whole = sum + carry;
            carry = (sum < add) | (whole < sum);
            s->limb[k][i] = whole;
            before = next;
        }
    }
    for (size_t i = 0; range.marked && i < m; i++)
        s->marks[i] |= src[limbs * m * sizeof(uint64_t) + i] & 7;
    return true;
}

/* A magnitude and its sign. limb has one more entry, for the fraction that division
 * adds. */
struct number {
    uint64_t limb[TRIB_EXACT_LIMBS + 1];
    unsigned limbs;
    int unit; /* of the lowest limb, as a power of two */
    bool negative;
    bool more; /* there is a non-zero remainder below the limbs */
};

static void divide(struct number *v, uint32_t divisor)
{
    uint64_t rest = 0;

    memmove(v->limb + 1, v->limb, v->limbs * sizeof *v->limb);
    v->limb[0] = 0;
    v->limbs++;
    v->unit -= LIMB_BITS;
    for (unsigned k = v->limbs; k-- > 0;) {
        const uint64_t high = rest << 32 | v->limb[k] >> 32;
        const uint64_t low = high % divisor << 32 | (v->limb[k] & UINT32_MAX);
        v->limb[k] = high / divisor << 32 | low / divisor;
        rest = low % divisor;
    }
    v->more = rest;
}

/* Return 64 bits, starting at bit `at`. */
static uint64_t bits_at(const struct number *v, unsigned at)
{
    const unsigned k = at / LIMB_BITS, by = at % LIMB_BITS;
    const uint64_t high = k + 1 < v->limbs ? v->limb[k + 1] : 0;

    return by ? v->limb[k] >> by | high << (LIMB_BITS - by) : v->limb[k];
}

static bool any_below(const struct number *v, unsigned at)
{
    for (unsigned k = 0; k < at / LIMB_BITS; k++)
        if (v->limb[k])
            return true;
    return at % LIMB_BITS && v->limb[at / LIMB_BITS] << (LIMB_BITS - at % LIMB_BITS);
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Round to nearest even with integers only, so the rounding mode of the FPU does not
 * matter. */
static float round_number(const struct number *v)
{
    const uint32_t sign = (uint32_t)v->negative << 31;
    unsigned k = v->limbs;

    while (k > 0 && !v->limb[k - 1])
        k--;
    if (k == 0)
        return float_of(v->more ? sign : 0);
    const int high = (int)(k * LIMB_BITS) - 1 - __builtin_clzll(v->limb[k - 1]);
    const int exponent = high + v->unit, least = -UNIT;
    const int ulp = exponent - MANTISSA > least ? exponent - MANTISSA : least;
    const int drop = ulp - v->unit; /* bits */
    if (exponent > 127)
        return float_of(sign | (uint32_t)EXPONENT_ALL << MANTISSA);
    if (drop <= 0) /* the mantissa has room for all bits */
        return float_of(sign + ((uint32_t)(ulp + UNIT) << MANTISSA) +
                        (uint32_t)(v->limb[0] << -drop));
    const bool beyond = drop > high + 1;
    uint32_t mantissa = drop > high ? 0 : (uint32_t)bits_at(v, (unsigned)drop);
    const bool half = !beyond && bits_at(v, (unsigned)drop - 1) & 1;
    const bool rest = beyond || v->more || any_below(v, (unsigned)drop - 1);
    mantissa += half && (rest || mantissa & 1);
    return float_of(sign + ((uint32_t)(ulp + UNIT) << MANTISSA) + mantissa);
}

/* As round_number, for at most 128 bits that are not all 0. */
static float round_wide(wide v, int unit, bool negative)
{
    const uint32_t sign = (uint32_t)negative << 31;
    const uint64_t top = (uint64_t)(v >> LIMB_BITS);
    const int high =
        top ? 127 - __builtin_clzll(top) : 63 - __builtin_clzll((uint64_t)v);
    const int exponent = high + unit, least = -UNIT;
    const int ulp = exponent - MANTISSA > least ? exponent - MANTISSA : least;
    const int drop = ulp - unit;
    uint32_t mantissa = 0;

    if (exponent > 127)
        return float_of(sign | (uint32_t)EXPONENT_ALL << MANTISSA);
    if (drop <= 0) {
        mantissa = (uint32_t)v << -drop;
    } else if (drop <= high + 1) {
        const wide half = (wide)1 << (drop - 1);
        mantissa = (uint32_t)(v >> (drop - 1) >> 1);
        mantissa += (v & half) && ((v & (half - 1)) || mantissa & 1);
    }
    return float_of(sign + ((uint32_t)(ulp + UNIT) << MANTISSA) + mantissa);
}

static float round_two_limbs(const struct trib_exact_limbs *s, size_t i)
{
    const uint64_t low = s->limb[0][i];
    const uint64_t high = s->limbs > 1 ? s->limb[1][i] : (uint64_t)((int64_t)low >> 63);
    const wide v = (wide)high << LIMB_BITS | low;
    const bool negative = high >> (LIMB_BITS - 1);

    return v ? round_wide(negative ? -v : v, (int)s->low - UNIT, negative) : 0.0f;
}

static float round_element(const struct trib_exact_limbs *s, size_t i, uint32_t divisor)
{
    struct number v = {.limbs = s->limbs, .unit = (int)s->low - UNIT};
    uint64_t carry;

    v.negative = s->limb[s->limbs - 1][i] >> (LIMB_BITS - 1);
    carry = v.negative;
    for (unsigned k = 0; k < s->limbs; k++) {
        v.limb[k] = (s->limb[k][i] ^ (v.negative ? UINT64_MAX : 0)) + carry;
        carry = carry && !v.limb[k];
    }
    if (divisor > 1)
        divide(&v, divisor);
    return round_number(&v);
}

static float value_of_marks(uint8_t marks)
{
    const uint8_t both = TRIB_EXACT_PLUS_INF | TRIB_EXACT_MINUS_INF;

    if (marks & TRIB_EXACT_NAN || (marks & both) == both)
        return float_of(0x7fc00000);
    return float_of(marks & TRIB_EXACT_MINUS_INF ? 0xff800000 : 0x7f800000);
}

void trib_exact_limbs_round(const struct trib_exact_limbs *s, uint32_t divisor,
                            float *x, size_t m)
{
    for (size_t i = 0; i < m; i++)
        x[i] = s->marks[i]                     ? value_of_marks(s->marks[i])
               : s->limbs <= 2 && divisor <= 1 ? round_two_limbs(s, i)
                                               : round_element(s, i, divisor);
}

float trib_exact_round_double(double value, uint32_t divisor)
{
    struct number v = {.limbs = 1};
    uint64_t b;

    memcpy(&b, &value, sizeof b);
    const int exponent = (int)(b >> DOUBLE_MANTISSA & DOUBLE_EXPONENT_ALL);
    if (exponent == 0 || exponent == DOUBLE_EXPONENT_ALL)
        return float_of(b << 1 ? 0x7fc00000 : 0); /* invalid input, or 0 */
    v.negative = b >> 63;
    v.limb[0] = (b & ((1ull << DOUBLE_MANTISSA) - 1)) | 1ull << DOUBLE_MANTISSA;
    v.unit = exponent - DOUBLE_UNIT;
    if (divisor > 1)
        divide(&v, divisor);
    return round_number(&v);
}
