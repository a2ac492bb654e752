/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Positions of a sparse block as bytes, in one of two layouts.
 *
 *   gaps     g[0] = p[0], g[i] = p[i] - p[i-1] - 1, by Golomb's code with a power of
 *            two as its parameter (Golomb 1966; Rice 1979):
 *
 *            | b, 1 byte | b low bits of each gap | g[i] >> b zeros and a one each |
 *
 *            both parts begin on a byte, and bits count from the lowest of a byte;
 *            unused bits are 0; b is at most 31. No position: no byte. Of positions
 *            that are spread at random a gap takes at most 6 % more than its entropy,
 *            which is about log2(e n / m) bits
 *   bitmap   n bits, bit i%8 of byte i/8 is set if i is a position; unused bits are 0
 */
#ifndef COMPRESS_PACK_INDEX_GAPS_H
#define COMPRESS_PACK_INDEX_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRIB_INDEX_GAPS_GROUP = 256 };

/* How m positions are best written as gaps. */
struct trib_index_gaps {
    unsigned low_bits; /* b */
    size_t bytes;
};

struct trib_index_gaps trib_index_gaps_measure(const uint32_t *positions, size_t m);

/** trib_index_gaps_encode - writes the bytes that trib_index_gaps_measure told, with
 * its low_bits, and no more; that many. */
size_t trib_index_gaps_encode(const uint32_t *positions, size_t m, unsigned low_bits,
                              uint8_t *dst);

/** trib_bitmap_encode - writes ceil(n / 8) bytes. */
void trib_bitmap_encode(const uint32_t *positions, size_t m, size_t n, uint8_t *dst);

/* Reads positions back, a group at a time, from bytes that nobody has checked. */
struct trib_positions {
    const uint8_t *src; /* bits of the bitmap, or of the unary parts */
    size_t len; /* bytes left at src */
    uint64_t read; /* bits of src that were loaded, as whole words */
    uint64_t word; /* bits of the newest that were not read yet */
    size_t n; /* positions are below this */
    size_t left; /* positions still to come */
    bool bitmap;
    /* Gaps have what follows. */
    unsigned low_bits;
    size_t high_bytes; /* of all unary parts */
    const uint8_t *low; /* low bits */
    const uint8_t *low_end; /* what may be read there */
    uint64_t low_at; /* the next one's first bit */
    uint64_t after; /* the bit behind the newest unary part */
    uint64_t next; /* the smallest position that may come */
};

/** trib_positions_open - begin to read p->left positions below p->n from len bytes;
 * false: these cannot be so many. */
bool trib_positions_open(struct trib_positions *p, const uint8_t *src, size_t len,
                         bool bitmap);

/**
 * trib_positions_next - the next min(left, 256) positions, rising and below n.
 *
 * returns  how many; 0 with left == 0 at the end, 0 with left > 0 if the bytes are
 * wrong
 */
size_t trib_positions_next(struct trib_positions *p,
                           uint32_t out[TRIB_INDEX_GAPS_GROUP]);

/** trib_positions_done - whether all positions were read and no byte is left over. */
bool trib_positions_done(const struct trib_positions *p);

#endif
