/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A vector of float32 as code words one behind the other, for who sends it as a stream:
 *
 *     | length u32 | code word | length u32 | code word | …
 *
 * Codec and count say how the vector is cut, so both ends know it. All words but the
 * last are of chunks of the same length.
 */
#ifndef COMPRESS_VECTOR_WORDS_H
#define COMPRESS_VECTOR_WORDS_H

#include "compress/codec.h"

struct trib_words; /* its memory is one chunk's, whatever the vector's length */

/** trib_words_check - refuse codecs that learn from the vectors of all ranks;
 * errors: TRIB_ERR_UNSUPPORTED with a sentence in err. */
trib_status_t trib_words_check(const struct trib_codec *codec, struct trib_error *err);

/**
 * trib_words_check_state - whether a codec does for values that replace those of the
 * reader, where nothing makes up for what is lost.
 *
 * errors   TRIB_ERR_UNSUPPORTED with a sentence in err: it is neither unbiased nor
 *          rounds each element by itself, or trib_words_check
 */
trib_status_t trib_words_check_state(const struct trib_codec *codec,
                                     struct trib_error *err);

/** trib_words_memory - bytes that trib_words_open takes. */
size_t trib_words_memory(const struct trib_codec *codec, size_t count);

/**
 * trib_words_open - for vectors of `count` elements, at least 1.
 *
 * codec    one that trib_words_check lets through; it outlives *out
 * errors   TRIB_ERR_NO_MEMORY
 * owner    trib_words_close; NULL is allowed there
 */
trib_status_t trib_words_open(const struct trib_codec *codec, size_t count,
                              struct trib_words **out);
void trib_words_close(struct trib_words *words);

/** trib_words_bound - the most bytes of all words with their lengths. */
size_t trib_words_bound(const struct trib_words *words);

/** trib_words_chunks - the number of chunks. */
size_t trib_words_chunks(const struct trib_words *words);

/** trib_words_chunk - elements of all chunks but the last. */
size_t trib_words_chunk(const struct trib_words *words);

/* A vector that is to be encoded. */
struct trib_words_source {
    const float *x; /* [count] */
    float *residual; /* [count], as of trib_codec_encode_ef; NULL: no error feedback */
    struct trib_encode_key key; /* its index is that of x[0] */
    size_t total; /* elements of the vector of which x is a part; 0: x is all */
};

/** trib_words_encode - write the word of one chunk, with its length before it; returns
 * their bytes. */
size_t trib_words_encode(struct trib_words *words, size_t chunk,
                         const struct trib_words_source *source, uint8_t *out);

/** trib_words_begin - the next bytes of trib_words_take are those of a vector from its
 * first one on. */
void trib_words_begin(struct trib_words *words);

/**
 * trib_words_take - decode what has come, in pieces of any length.
 *
 * x        [count]; elements of words that are complete are there
 * returns  TRIB_INPROGRESS: more is to come; TRIB_OK: that was all;
 *          TRIB_ERR_CODEC: these bytes are no such vector, or more than one
 */
trib_status_t trib_words_take(struct trib_words *words, const uint8_t *bytes, size_t n,
                              float *x);

#endif
