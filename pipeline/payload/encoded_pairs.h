/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The encoding of the (index, value) pairs of one chunk.
 *
 * No pairs are encoded as no bytes. Otherwise:
 *
 *     | pairs u32 | how u32 | positions, to a multiple of 8 bytes | values |
 *
 * Positions count from the chunk's first element and ascend. If there are n, they are
 * omitted. A bitmap of n bits replaces the list of positions unless it is longer. The
 * list has 2 bytes per position in a chunk of up to 65536 elements, else 4. If shorter,
 * distances replace the latter: from each position to the next, and from -1 to the
 * first. A distance is a u16, or 0 and a u32 if it is 65536 or more. `how` is then 1
 * plus the number of such long distances, else 0. A union that fills up thus becomes a
 * dense vector by itself. SparCML (Renggli et al., SC 2019) changes its representation
 * at the same density.
 */
#ifndef PIPELINE_PAYLOAD_ENCODED_PAIRS_H
#define PIPELINE_PAYLOAD_ENCODED_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The pairs of a chunk. */
struct trib_pairs {
    size_t n;
    const uint32_t *at; /* [n] ascending positions, from the chunk's first element */
    const uint8_t *values; /* [n] elements, any alignment */
};

/** trib_pair_block - return true if pairs i to i + 63 occupy all positions of a block
 * that begins at a multiple of 64. */
static inline bool trib_pair_block(const struct trib_pairs *p, size_t i)
{
    return p->at[i] % 64 == 0 && p->n - i >= 64 && p->at[i + 63] == p->at[i] + 63;
}

/** trib_pair_copy - copy one element, of 1, 2, 4 or 8 bytes. */
static inline void trib_pair_copy(uint8_t *to, const uint8_t *from, size_t element)
{
    if (element == 4)
        memcpy(to, from, 4);
    else if (element == 8)
        memcpy(to, from, 8);
    else if (element == 2)
        memcpy(to, from, 2);
    else
        *to = *from;
}

/** trib_encoded_pairs_length - return the encoded length of these pairs of a chunk of n
 * elements. */
size_t trib_encoded_pairs_length(const struct trib_pairs *pairs, size_t n,
                                 size_t element);

/** trib_encoded_pairs_bytes - return the maximum encoded length of `pairs` pairs of a
 * chunk of n elements. */
size_t trib_encoded_pairs_bytes(size_t pairs, size_t n, size_t element);

/** trib_encoded_pairs_bound - return the maximum encoded length of a chunk of n
 * elements. */
size_t trib_encoded_pairs_bound(size_t n, size_t element);

/** trib_encoded_pairs_write - encode pairs: trib_encoded_pairs_length bytes. */
void trib_encoded_pairs_write(const struct trib_pairs *pairs, size_t n, size_t element,
                              uint8_t *word);

/**
 * trib_encoded_pairs_read - decode the pairs of a peer; safe for any bytes.
 *
 * word     any alignment; the peer may write to it during the call
 * at       [n] receives the positions; out points to it
 * out      its values are in the word
 * returns  false if the bytes are not the encoding of a chunk of n elements
 */
bool trib_encoded_pairs_read(const uint8_t *word, size_t bytes, size_t n,
                             size_t element, uint32_t *at, struct trib_pairs *out);

#endif
