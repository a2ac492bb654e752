/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Positions of a sparse block as bytes, in one of two layouts.
 *
 *   gaps     g[0] = p[0], g[i] = p[i] - p[i-1] - 1, in a Golomb code with a power of
 *            two as its parameter (Golomb 1966; Rice 1979):
 *
 *            | b, 1 byte | b low bits of each gap | g[i] >> b zeros and a one each |
 *
 *            Both parts start at a byte, and bits count from the lowest of a byte.
 *            Unused bits are 0; b is at most 31. No positions take no bytes. For
 *            uniformly random positions a gap takes at most 6 % more than its entropy,
 *            which is about log2(e n / m) bits.
 *   bitmap   n bits, bit i%8 of byte i/8 is set if i is a position; unused bits are 0
 */
#ifndef COMPRESS_PACK_INDEX_GAPS_H
#define COMPRESS_PACK_INDEX_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRIB_INDEX_GAPS_GROUP = 256 };

/* The best gap encoding of m positions. */
struct trib_index_gaps {
    unsigned low_bits; /* b */
    size_t bytes;
};

struct trib_index_gaps trib_index_gaps_measure(const uint32_t *positions, size_t m);

/** trib_index_gaps_encode - write exactly the bytes that trib_index_gaps_measure
 * returned, with its low_bits; return their number. */
size_t trib_index_gaps_encode(const uint32_t *positions, size_t m, unsigned low_bits,
                              uint8_t *dst);

/** trib_bitmap_encode - write ceil(n / 8) bytes. */
void trib_bitmap_encode(const uint32_t *positions, size_t m, size_t n, uint8_t *dst);

/* Decoder of positions from untrusted bytes, one group at a time. */
struct trib_positions {
    const uint8_t *src; /* bits of the bitmap, or of the unary parts */
    size_t len; /* bytes left at src */
    uint64_t read; /* bits loaded from src, in whole words */
    uint64_t word; /* unread bits of the last word */
    size_t n; /* positions are below this */
    size_t left; /* positions left to read */
    bool bitmap;
    /* The rest applies to gaps only. */
    unsigned low_bits;
    size_t high_bytes; /* of all unary parts */
    const uint8_t *low; /* low bits */
    const uint8_t *low_end; /* end of the readable low bits */
    uint64_t low_at; /* first bit of the next one */
    uint64_t after; /* the bit after the last unary part */
    uint64_t next; /* the smallest possible next position */
};

/** trib_positions_open - start to read p->left positions below p->n from len bytes;
 * false: the bytes cannot contain them. */
bool trib_positions_open(struct trib_positions *p, const uint8_t *src, size_t len,
                         bool bitmap);

/**
 * trib_positions_next - read the next min(left, 256) positions, increasing and below n.
 *
 * returns  their number; 0 with left == 0 at the end, 0 with left > 0 if the bytes are
 *          invalid
 */
size_t trib_positions_next(struct trib_positions *p,
                           uint32_t out[TRIB_INDEX_GAPS_GROUP]);

/** trib_positions_done - return true if all positions were read and no byte is left. */
bool trib_positions_done(const struct trib_positions *p);

#endif
