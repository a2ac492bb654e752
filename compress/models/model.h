/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Models: what a codec comes to know in a plan. PowerSGD's factors, GradiVeQ's basis,
 * LGC's weights. An all-reduce by a codec of TRIB_CODEC_MODEL owns one; it is the same
 * on all ranks, because it follows from numbers alone that all ranks have: sums, and
 * the step.
 *
 * In one start, of each chunk:
 *
 *     share     floats of each rank, of which all get the sum (a rank that is to tell
 *               the others something gives it, and they give 0), or
 *               trib_codec_agreement_op
 *     encode    trib_codec_encode with this share: a word of coefficients
 *     merge     words add: trib_codec_merge
 *     result    the sum's word to elements; the model learns from it
 *
 * Between two starts ranks may sum one more vector: the exchange. So a basis that one
 * rank fitted comes to all, or the derivatives of weights.
 *
 * A word begins with the epoch of the model: | u32 epoch | u32 n | and then f32[n], or
 * n pairs of u32 position and f32, or n bytes of another codec for what stands behind a
 * "+". In epoch 0 the floats are the elements themselves: before anything was learned,
 * and where no model is (other collectives). Words of different epochs do not add.
 */
#ifndef COMPRESS_MODELS_MODEL_H
#define COMPRESS_MODELS_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_codec;
struct trib_error;
struct trib_model; /* belongs to one thread at a time */

struct trib_model_opts {
    size_t total; /* elements of the plan's vector */
    size_t piece; /* elements of each of its chunks, of the last one at most */
    int rank;
    int ranks;
    bool mean; /* the sum is divided by ranks in its word */
    uint64_t seed; /* the same on all ranks */
};

/**
 * trib_model_create - of a codec of TRIB_CODEC_MODEL; it must live as long.
 *
 * errors   TRIB_ERR_NO_MEMORY; TRIB_ERR_CODEC, TRIB_ERR_UNSUPPORTED: the chunks are too
 *          small or too large for it, or a library is not installed
 * owner    trib_model_destroy; NULL is allowed there
 */
trib_status_t trib_model_create(const struct trib_codec *codec,
                                const struct trib_model_opts *opts,
                                struct trib_error *err, struct trib_model **out);
void trib_model_destroy(struct trib_model *m);

/**
 * trib_model_seed - another opts.seed, before the first start or trib_model_read: what
 * was drawn by the one before is drawn anew. The same on all ranks.
 */
void trib_model_seed(struct trib_model *m, uint64_t seed);

/** trib_model_trained_bytes - what a rank sends of a chunk of n elements, where all
 * have as many, when it is not learning; what ranks share first is in it. */
size_t trib_model_trained_bytes(const struct trib_codec *c, size_t n);

/** trib_model_begin - a start begins, the first has number 1; after
 * trib_model_exchanged. */
void trib_model_begin(struct trib_model *m, uint32_t step);

/** trib_model_epoch - that words of this start have; 0: they are the elements. */
uint32_t trib_model_epoch(const struct trib_model *m);

/** trib_model_learning - is this start one by which it learns, or of what it
 * learned? */
bool trib_model_learning(const struct trib_model *m);

/**
 * trib_model_train - starts of a rank that is alone with one vector, until one is not
 * learning any more: for tools that show what it does then.
 *
 * x        n elements; each start takes one piece of it
 * errors   TRIB_ERR_NO_MEMORY, and those of trib_model_exchanged
 */
trib_status_t trib_model_train(struct trib_model *m, const float *x, size_t n,
                               struct trib_error *err);

/** trib_model_exchange_floats - of the vector that is exchanged; 0: none ever is. */
size_t trib_model_exchange_floats(const struct trib_model *m);

/**
 * trib_model_exchange - is a vector exchanged before start number `step`?
 *
 * All ranks say the same. Start number step - 1 is done.
 * own_out  trib_model_exchange_floats, if so: what this rank gives
 */
bool trib_model_exchange(struct trib_model *m, uint32_t step, float *own_out);

/** trib_model_exchanged - the sum of what the ranks gave; errors TRIB_ERR_CODEC */
trib_status_t trib_model_exchanged(struct trib_model *m, const float *sum,
                                   struct trib_error *err);

/* Elements [first, first + n) of the vector: a whole number of pieces lies before
 * them. */
struct trib_model_chunk {
    size_t first;
    size_t n;
    const float *agreed; /* of all ranks, settled; NULL where there is one rank */
};

/**
 * trib_model_propose - this rank's part of what the ranks sum before they encode c.
 *
 * x          c->n elements: what will be encoded
 * proposal_out  trib_codec_agreed_floats(opts.piece) floats
 */
void trib_model_propose(struct trib_model *m, const struct trib_model_chunk *c,
                      const float *x, float *proposal_out);

/** trib_model_propose_added - the same of x + residual, which becomes that sum. */
void trib_model_propose_added(struct trib_model *m, const struct trib_model_chunk *c,
                              const float *x, float *residual, float *proposal_out);

/** trib_model_settle - share is the sum of all ranks' and becomes what c->agreed points
 * at. */
void trib_model_settle(struct trib_model *m, const struct trib_model_chunk *c,
                       float *share);

/**
 * trib_model_result - the elements of a chunk from the word of the sum; the model
 * learns.
 *
 * errors   TRIB_ERR_CODEC: these bytes are no word of this epoch and chunk
 */
trib_status_t trib_model_result(struct trib_model *m, const struct trib_model_chunk *c,
                                const uint8_t *src, size_t len, float *x_out);

/**
 * trib_model_tell - what it has learned, in half a line; "" if there is nothing to say.
 *
 * text     NULL is allowed if bytes is 0
 * returns  the characters, as snprintf
 */
size_t trib_model_tell(const struct trib_model *m, char *text, size_t bytes);

/**
 * trib_model_bytes, trib_model_write, trib_model_read - what it knows, as bytes.
 *
 * bytes    trib_model_bytes(m): the same for all models of the same codec and opts
 * errors   TRIB_ERR_MISMATCH: these are not such bytes; the model is what it was
 */
size_t trib_model_bytes(const struct trib_model *m);
void trib_model_write(const struct trib_model *m, uint8_t *out);
trib_status_t trib_model_read(struct trib_model *m, const uint8_t *src, size_t len,
                              struct trib_error *err);

#endif
