/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A vector of float32 as a stream of encoded chunks:
 *
 *     | length u32 | encoded chunk | length u32 | encoded chunk | …
 *
 * Codec and count determine the chunks, so both ends know them. All chunks but the last
 * have the same number of elements.
 */
#ifndef COMPRESS_VECTORS_VECTOR_WORDS_H
#define COMPRESS_VECTORS_VECTOR_WORDS_H

#include "compress/codec.h"

struct trib_words; /* memory for one chunk, whatever the vector's length */

/**
 * trib_words_check - refuse codecs that must be trained on the vectors of all ranks.
 *
 * errors   TRIB_ERR_UNSUPPORTED with a message in err
 */
trib_status_t trib_words_check(const struct trib_codec *codec, struct trib_error *err);

/**
 * trib_words_check_state - refuse codecs unfit for values that replace the reader's.
 *
 * Nothing makes up for the losses of such values.
 * errors   TRIB_ERR_UNSUPPORTED with a message in err: the codec neither is unbiased
 *          nor rounds each element separately, or trib_words_check refuses it
 */
trib_status_t trib_words_check_state(const struct trib_codec *codec,
                                     struct trib_error *err);

/** trib_words_memory - return the bytes that trib_words_open allocates. */
size_t trib_words_memory(const struct trib_codec *codec, size_t count);

/**
 * trib_words_open - create a stream for vectors of `count` elements, at least 1.
 *
 * codec    accepted by trib_words_check; outlives *out
 * errors   TRIB_ERR_NO_MEMORY
 * owner    caller; free with trib_words_close, which accepts NULL
 */
trib_status_t trib_words_open(const struct trib_codec *codec, size_t count,
                              struct trib_words **out);
void trib_words_close(struct trib_words *words);

/** trib_words_bound - return the largest size of the stream, lengths included. */
size_t trib_words_bound(const struct trib_words *words);

/** trib_words_chunks - return the number of chunks. */
size_t trib_words_chunks(const struct trib_words *words);

/** trib_words_chunk - return the elements of each chunk but the last. */
size_t trib_words_chunk(const struct trib_words *words);

/* A vector to encode. */
struct trib_words_source {
    const float *x; /* [count] */
    float *residual; /* [count], as in trib_codec_encode_ef; NULL: no error feedback */
    struct trib_encode_key key; /* index is that of x[0] */
    /* elements of the vector that x is part of; 0: x is the whole vector */
    size_t total;
};

/** trib_words_encode - write one encoded chunk with its length before it; return the
 * bytes written. */
size_t trib_words_encode(struct trib_words *words, size_t chunk,
                         const struct trib_words_source *source, uint8_t *out);

/** trib_words_begin - start a new vector: the next trib_words_take gets its first
 * bytes. */
void trib_words_begin(struct trib_words *words);

/**
 * trib_words_take - decode received bytes, in pieces of any length.
 *
 * x        [count]; contains the elements of all complete chunks
 * returns  TRIB_INPROGRESS: more bytes are needed; TRIB_OK: the vector is complete;
 *          TRIB_ERR_CODEC: the bytes are not such a vector, or more than one
 */
trib_status_t trib_words_take(struct trib_words *words, const uint8_t *bytes, size_t n,
                              float *x);

#endif
