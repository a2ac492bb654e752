/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The code words of parts that go to neighbours. What a part loses stays with its
 * giver, so the sum over all ranks is kept.
 */
#ifndef COMM_NEIGHBOR_WORDS_H
#define COMM_NEIGHBOR_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_comm;
struct trib_neighbor_words;

/**
 * trib_neighbor_words_open - for parts of `count` elements of float32.
 *
 * errors   TRIB_ERR_INVALID, TRIB_ERR_UNSUPPORTED, TRIB_ERR_NO_MEMORY with a sentence
 * owner    trib_neighbor_words_close; NULL is allowed there
 */
trib_status_t trib_neighbor_words_open(struct trib_comm *comm, const char *codec,
                                       size_t count, struct trib_neighbor_words **out);
void trib_neighbor_words_close(struct trib_neighbor_words *w);

/** trib_neighbor_words_bytes - of all words of a part: each part has as many. */
size_t trib_neighbor_words_bytes(const struct trib_neighbor_words *w);

/** trib_neighbor_words_digest - of the codec; 0: w is NULL. */
uint64_t trib_neighbor_words_digest(const struct trib_neighbor_words *w);

/** trib_neighbor_words_text - the codec, in full. */
const char *trib_neighbor_words_text(const struct trib_neighbor_words *w);

/**
 * trib_neighbor_words_give - encode a part, and return to x what its words leave out.
 *
 * part     [count], which becomes what the words say
 * x        [count] of the giver
 * edge     the receiver: it keys random rounding, and so does the part itself, so that
 *          a run that goes on from saved vectors rounds as it would have
 * out      [trib_neighbor_words_bytes]
 * thread   one at a time, also beside trib_neighbor_words_take
 */
void trib_neighbor_words_give(struct trib_neighbor_words *w, uint32_t edge, float *part,
                              float *x, uint8_t *out);

/** trib_neighbor_words_take - decode words of a part; TRIB_ERR_CODEC: they are none.
 *
 * thread   one at a time
 */
trib_status_t trib_neighbor_words_take(struct trib_neighbor_words *w,
                                       const uint8_t *words, float *part_out);

#endif
