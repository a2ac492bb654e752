/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Elias omega codes (Elias, IEEE Transactions on Information Theory, 1975) in a bit
 * stream, highest bit of a byte first. The code of k >= 1 starts as "0". While k > 1, k
 * in binary is prepended and k becomes its number of bits minus 1. So 1 is "0", 2
 * "100", 3 "110", 4 "101000". A number below 2^32 has at most 43 bits.
 */
#ifndef COMPRESS_PACK_ELIAS_OMEGA_H
#define COMPRESS_PACK_ELIAS_OMEGA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct trib_omega {
    uint64_t code; /* in the lowest bits; the highest of these is sent first */
    int bits;
};

static inline struct trib_omega trib_omega_of(uint64_t k)
{
    struct trib_omega o = {0, 1};
    while (k > 1) {
        const int width = 64 - __builtin_clzll(k);
        o.code |= k << o.bits;
        o.bits += width;
        k = (uint64_t)width - 1;
    }
    return o;
}

struct trib_bit_writer {
    uint8_t *at;
    uint64_t word; /* bits not yet written: the lowest `filled` */
    int filled; /* at most 16 between two calls */
};

/** trib_bits_put - append at most 48 bits. */
static inline void trib_bits_put(struct trib_bit_writer *w, struct trib_omega o)
{
    w->word = w->word << o.bits | o.code;
    for (w->filled += o.bits; w->filled > 16; w->filled -= 16) {
        const uint16_t high =
            __builtin_bswap16((uint16_t)(w->word >> (w->filled - 16)));
        memcpy(w->at, &high, sizeof high);
        w->at += sizeof high;
    }
}

/** trib_bits_end - pad with zeros to a whole byte; return the end. */
static inline uint8_t *trib_bits_end(struct trib_bit_writer *w)
{
    for (; w->filled > 0; w->filled -= 8)
        *w->at++ = (uint8_t)(w->filled >= 8 ? w->word >> (w->filled - 8)
                                            : w->word << (8 - w->filled));
    return w->at;
}

struct trib_bit_reader {
    const uint8_t *src;
    size_t len; /* bytes */
    size_t at; /* bits read */
};

/* Return the next 57 bits or more, at the top of the word; zeros past the end. */
static inline uint64_t trib_bits_peek(const struct trib_bit_reader *r)
{
    const size_t byte = r->at / 8;
    uint64_t w = 0;
    if (byte + sizeof w <= r->len)
        memcpy(&w, r->src + byte, sizeof w);
    else if (byte < r->len)
        memcpy(&w, r->src + byte, r->len - byte);
    return __builtin_bswap64(w) << r->at % 8;
}

/* Decode the number at the top of *w and shift *used_out bits out of *w. Return false
 * if it is not below 2^32. */
static inline bool trib_omega_take(uint64_t *w, size_t *used_out, uint64_t *k_out)
{
    uint64_t k = 1, next;
    size_t used = 1;
    for (; *w >> 63; *w <<= k + 1, used += (size_t)k + 1, k = next) {
        if (k > 31)
            return false;
        next = *w >> (63 - k);
    }
    *w <<= 1;
    *k_out = k;
    *used_out = used;
    return true;
}

/** trib_bits_done - return true if only zeros up to a whole byte remain. */
static inline bool trib_bits_done(const struct trib_bit_reader *r)
{
    return (r->at + 7) / 8 == r->len && trib_bits_peek(r) == 0;
}

#endif
