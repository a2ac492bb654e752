/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/pack/index_gaps.h"

#include <string.h>

/*
 * All low bits precede all unary parts, instead of each next to its own. So a position
 * can be decoded without waiting for the length of the previous one.
 */
enum {
    GROUP = TRIB_INDEX_GAPS_GROUP,
    LOW_BITS_MAX = 31,
    /* a load of this size contains the low bits at any bit offset */
    LOAD = sizeof(uint64_t),
};

static size_t bytes_of_bits(uint64_t bits)
{
    return (size_t)((bits + 7) / 8);
}

static size_t size_of(size_t m, unsigned low_bits, uint64_t high)
{
    return 1 + bytes_of_bits((uint64_t)m * low_bits) + bytes_of_bits(m + high);
}

static uint32_t gap_before(const uint32_t *positions, size_t i)
{
    return positions[i] - positions[i - 1] - 1;
}

/* If all gaps have the same random distribution, this parameter or the next lower one
 * is best: count the unary parts of both. */
struct trib_index_gaps trib_index_gaps_measure(const uint32_t *positions, size_t m)
{
    if (m == 0)
        return (struct trib_index_gaps){0, 0};
    const uint64_t mean = positions[m - 1] / m;
    const unsigned bits = mean ? 63 - (unsigned)__builtin_clzll(mean) : 0;
    const unsigned below = bits ? bits - 1 : 0;
    uint64_t high = positions[0] >> bits, higher = positions[0] >> below;

    for (size_t i = 1; i < m; i++) {
        const uint32_t gap = gap_before(positions, i);
        high += gap >> bits;
        higher += gap >> below;
    }
    const size_t size = size_of(m, bits, high), other = size_of(m, below, higher);
    return other < size ? (struct trib_index_gaps){below, other}
                        : (struct trib_index_gaps){bits, size};
}

/* Writer of a bit stream. */
struct writer {
    uint8_t *at;
    uint64_t word;
    unsigned fill; /* bits in word, below 64 */
};

static void flush(struct writer *w)
{
    memcpy(w->at, &w->word, bytes_of_bits(w->fill));
    w->at += bytes_of_bits(w->fill);
    w->word = 0;
    w->fill = 0;
}

static void put_low(struct writer *w, uint32_t gap, unsigned bits)
{
    w->word |= (gap & ((UINT64_C(1) << bits) - 1)) << w->fill;
    w->fill += bits;
    if (w->fill >= 32) {
        memcpy(w->at, &w->word, 4);
        w->at += 4;
        w->word >>= 32;
        w->fill -= 32;
    }
}

/* Append zeros, then a one. */
static void put_unary(struct writer *w, uint32_t zeros)
{
    while (zeros >= 64 - w->fill) {
        zeros -= 64 - w->fill;
        w->fill = 64;
        flush(w);
    }
    w->fill += zeros;
    w->word |= UINT64_C(1) << w->fill++;
    if (w->fill == 64)
        flush(w);
}

size_t trib_index_gaps_encode(const uint32_t *positions, size_t m, unsigned low_bits,
                              uint8_t *dst)
{
    struct writer w = {.at = dst + 1};

    if (m == 0)
        return 0;
    dst[0] = (uint8_t)low_bits;
    put_low(&w, positions[0], low_bits);
    for (size_t i = 1; i < m; i++)
        put_low(&w, gap_before(positions, i), low_bits);
    flush(&w);
    put_unary(&w, positions[0] >> low_bits);
    for (size_t i = 1; i < m; i++)
        put_unary(&w, gap_before(positions, i) >> low_bits);
    flush(&w);
    return (size_t)(w.at - dst);
}

void trib_bitmap_encode(const uint32_t *positions, size_t m, size_t n, uint8_t *dst)
{
    const size_t words = n / 64;
    size_t i = 0;
    for (size_t w = 0; w < words; w++) {
        /* in a register, to avoid a dependency through memory between bits of the same
         * byte */
        uint64_t word = 0;
        for (; i < m && positions[i] / 64 == w; i++)
            word |= UINT64_C(1) << positions[i] % 64;
        memcpy(dst + 8 * w, &word, sizeof word);
    }
    memset(dst + 8 * words, 0, (n % 64 + 7) / 8);
    for (; i < m; i++)
        dst[positions[i] / 8] |= (uint8_t)(1u << positions[i] % 8);
}

bool trib_positions_open(struct trib_positions *p, const uint8_t *src, size_t len,
                         bool bitmap)
{
    *p = (struct trib_positions){
        .src = src, .len = len, .n = p->n, .left = p->left, .bitmap = bitmap};
    if (bitmap)
        return len == p->n / 8 + (p->n % 8 != 0);
    if (p->left == 0)
        return len == 0;
    if (len == 0)
        return false;
    uint8_t low_bits; /* a copy, since a peer may change the byte at src */
    memcpy(&low_bits, src, 1);
    const uint64_t used = (uint64_t)p->left * low_bits;
    const size_t low = bytes_of_bits(used);
    if (low_bits > LOW_BITS_MAX || low > len - 1 || (used % 8 && src[low] >> used % 8))
        return false;
    p->low_bits = low_bits;
    p->low = src + 1;
    p->low_end = src + len;
    p->src = src + 1 + low;
    p->len = p->high_bytes = len - 1 - low;
    return true;
}

/* Load the next 64 bits of the bitmap or of the unary parts, or those that remain. */
static bool refill(struct trib_positions *p)
{
    const size_t bytes = p->len < 8 ? p->len : 8;
    if (bytes == 0)
        return false;
    p->word = 0;
    memcpy(&p->word, p->src, bytes);
    p->src += bytes;
    p->len -= bytes;
    p->read += 64;
    return true;
}

/* Find the next bit that is 1, counted from the first word. */
static inline bool next_one(struct trib_positions *p, uint64_t *at_out)
{
    while (p->word == 0)
        if (!refill(p))
            return false;
    *at_out = p->read - 64 + (uint64_t)__builtin_ctzll(p->word);
    p->word &= p->word - 1;
    return true;
}

/* Return the low bits of the gap at bit p->low_at. */
static inline uint64_t next_low(struct trib_positions *p)
{
    const uint8_t *at = p->low + p->low_at / 8;
    const size_t left = (size_t)(p->low_end - at);
    uint64_t word = 0;

    if (left >= LOAD)
        memcpy(&word, at, LOAD);
    else
        memcpy(&word, at, left);
    word >>= p->low_at % 8;
    p->low_at += p->low_bits;
    return word & ((UINT64_C(1) << p->low_bits) - 1);
}

static size_t next_gaps(struct trib_positions *p, size_t count, uint32_t out[GROUP])
{
    struct trib_positions r = *p; /* a copy in registers, since out must not alias *p */
    const uint64_t most = r.n >> r.low_bits;
    uint64_t one;

    for (size_t j = 0; j < count; j++) {
        if (!next_one(&r, &one) || one - r.after > most)
            return 0;
        r.next += (one - r.after) << r.low_bits | next_low(&r);
        r.after = one + 1;
        out[j] = (uint32_t)r.next++;
    }
    *p = r;
    return r.next > r.n ? 0 : count; /* increasing, so the last is the largest */
}

static size_t next_bits(struct trib_positions *p, size_t count, uint32_t out[GROUP])
{
    uint64_t at;

    for (size_t j = 0; j < count; j++) {
        if (!next_one(p, &at) || at >= p->n)
            return 0;
        out[j] = (uint32_t)at;
    }
    return count;
}

size_t trib_positions_next(struct trib_positions *p, uint32_t out[GROUP])
{
    const size_t most = p->left < GROUP ? p->left : GROUP;
    const size_t count = p->bitmap ? next_bits(p, most, out) : next_gaps(p, most, out);

    p->left -= count;
    return count;
}

bool trib_positions_done(const struct trib_positions *p)
{
    if (p->left || p->word)
        return false;
    if (!p->bitmap)
        return bytes_of_bits(p->after) == p->high_bytes;
    for (size_t i = 0; i < p->len; i++)
        if (p->src[i])
            return false;
    return true;
}
