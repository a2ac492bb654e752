/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Positions of a sparse block as bytes, in one of two layouts.
 *
 *   gaps     g[0] = p[0], g[i] = p[i] - p[i-1] - 1, in groups of 256 (the last is
 *            shorter), each group a stream-vbyte stream of its own:
 *
 *            | control: 2 bits a gap, ceil(m/4) bytes | data: 1-4 bytes a gap |
 *
 *            gap j of a group has bits 2*(j%4)… of control byte j/4, value = bytes - 1;
 *            unused control bits are 0; data bytes are little-endian
 *   bitmap   n bits, bit i%8 of byte i/8 is set if i is a position; unused bits are 0
 */
#ifndef COMPRESS_PACK_INDEX_GAPS_H
#define COMPRESS_PACK_INDEX_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRIB_INDEX_GAPS_GROUP = 256 };

struct trib_kernels;

/** trib_index_gaps_bytes - size of m rising positions as gaps. */
size_t trib_index_gaps_bytes(const struct trib_kernels *kernels,
                             const uint32_t *positions, size_t m);

/** trib_index_gaps_encode - writes trib_index_gaps_bytes(positions, m) bytes and no
 * more; that many. */
size_t trib_index_gaps_encode(const uint32_t *positions, size_t m, uint8_t *dst);

/** trib_bitmap_encode - writes ceil(n / 8) bytes. */
void trib_bitmap_encode(const uint32_t *positions, size_t m, size_t n, uint8_t *dst);

/* Reads positions back, a group at a time, from bytes that nobody has checked. */
struct trib_positions {
    const uint8_t *src;
    size_t len; /* bytes left at src */
    uint64_t next; /* the smallest position that may come */
    size_t n; /* positions are below this */
    size_t left; /* positions still to come */
    bool bitmap;
    uint64_t word; /* bitmap: bits of the current word not yet read */
};

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
