/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encoded parts sent to neighbours. The encoding error of a part stays with its sender,
 * so the sum over all ranks is preserved.
 */
#ifndef COMM_KINDS_NEIGHBOR_WORDS_H
#define COMM_KINDS_NEIGHBOR_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_comm;
struct trib_neighbor_words;

/**
 * trib_neighbor_words_open - create the state for parts of `count` float32 elements.
 *
 * errors   TRIB_ERR_INVALID, TRIB_ERR_UNSUPPORTED, TRIB_ERR_NO_MEMORY with a message
 * owner    free with trib_neighbor_words_close, which accepts NULL
 */
trib_status_t trib_neighbor_words_open(struct trib_comm *comm, const char *codec,
                                       size_t count, struct trib_neighbor_words **out);
void trib_neighbor_words_close(struct trib_neighbor_words *w);

/** trib_neighbor_words_bytes - return the encoded size of any part. */
size_t trib_neighbor_words_bytes(const struct trib_neighbor_words *w);

/** trib_neighbor_words_digest - return the codec's digest; 0: w is NULL. */
uint64_t trib_neighbor_words_digest(const struct trib_neighbor_words *w);

/** trib_neighbor_words_text - return the full codec text. */
const char *trib_neighbor_words_text(const struct trib_neighbor_words *w);

/**
 * trib_neighbor_words_give - encode a part, and add its encoding error back to x.
 *
 * part     [count], replaced by its decoded value
 * x        [count] of the sender
 * edge     the receiver. Random rounding is keyed by it and by the part itself, so a
 *          run resumed from saved vectors rounds the same way
 * out      [trib_neighbor_words_bytes]
 * thread   one at a time; may run concurrently with trib_neighbor_words_take
 */
void trib_neighbor_words_give(struct trib_neighbor_words *w, uint32_t edge, float *part,
                              float *x, uint8_t *out);

/** trib_neighbor_words_take - decode a part; TRIB_ERR_CODEC: invalid encoding.
 *
 * thread   one at a time */
trib_status_t trib_neighbor_words_take(struct trib_neighbor_words *w,
                                       const uint8_t *words, float *part_out);

#endif
