/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The (index, value) pairs of one chunk as bytes: a pair word.
 *
 * No pairs are no bytes. Else:
 *
 *     | pairs u32 | how u32 | positions, to a multiple of 8 bytes | values |
 *
 * Positions count from the chunk's first element and rise. All n of them are left out;
 * a bitmap of n bits stands for them where that is not longer than a list; a list has 2
 * bytes for each position of a chunk of up to 65536 elements, else 4. In place of the
 * latter come, where they take fewer bytes, the distances from each position to the
 * next and of the first one from -1: u16, or 0 and u32 if they are 65536 or more. `how`
 * is 1 and the number of those then, else 0. So a union that fills up becomes a dense
 * vector by itself. SparCML (Renggli et al., SC 2019) changes its representation at the
 * same density.
 */
#ifndef PIPELINE_PAYLOAD_PAIR_WORD_H
#define PIPELINE_PAYLOAD_PAIR_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The pairs of a chunk. */
struct trib_pairs {
    size_t n;
    const uint32_t *at; /* [n] rising positions, from the chunk's first element */
    const uint8_t *values; /* [n] elements, of any alignment */
};

/** trib_pair_block - true if the pairs from number i on are of all 64 positions of a
 * block that begins at a multiple of 64. */
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

/** trib_pair_word_length - the length of the word of pairs of a chunk of n elements. */
size_t trib_pair_word_length(const struct trib_pairs *pairs, size_t n, size_t element);

/** trib_pair_word_bytes - the length of the longest word of `pairs` pairs of a chunk of
 * n elements. */
size_t trib_pair_word_bytes(size_t pairs, size_t n, size_t element);

/** trib_pair_word_bound - the length of the longest word of a chunk of n elements. */
size_t trib_pair_word_bound(size_t n, size_t element);

/** trib_pair_word_write - write the word of pairs: trib_pair_word_length bytes. */
void trib_pair_word_write(const struct trib_pairs *pairs, size_t n, size_t element,
                          uint8_t *word);

/**
 * trib_pair_word_read - read a word from a peer; any bytes are safe.
 *
 * word     any alignment; the peer may write to it meanwhile
 * at       [n] receives the positions, to which out points
 * out      its values are in the word
 * returns  false if these bytes are not a word of a chunk of n elements
 */
bool trib_pair_word_read(const uint8_t *word, size_t bytes, size_t n, size_t element,
                         uint32_t *at, struct trib_pairs *out);

#endif
