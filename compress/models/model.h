/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Models: state that a codec learns in a plan, such as PowerSGD's factors, GradiVeQ's
 * basis or LGC's weights. An all-reduce with a TRIB_CODEC_MODEL codec owns a model. It
 * is the same on all ranks, because it depends only on numbers that all ranks have:
 * sums, and the step.
 *
 * In one start, for each chunk:
 *
 *     share     floats of each rank, summed over the ranks or combined by
 *               trib_codec_agreement_op (a rank sends data to the others by
 *               contributing it while they contribute 0)
 *     encode    trib_codec_encode with this share: encoded coefficients
 *     merge     encoded chunks add: trib_codec_merge
 *     result    decode the sum to elements; the model learns from it
 *
 * Between two starts the ranks may sum one more vector: the exchange. It distributes a
 * basis that one rank fitted, or sums derivatives of weights.
 *
 * An encoded chunk starts with the epoch of the model: | u32 epoch | u32 n |. Then
 * follow f32[n], or n pairs of u32 position and f32, or n bytes of the codec after "+".
 * In epoch 0 the floats are the elements themselves: before training, and without a
 * model (other collectives). Encodings of different epochs do not add.
 */
#ifndef COMPRESS_MODELS_MODEL_H
#define COMPRESS_MODELS_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_codec;
struct trib_error;
struct trib_model; /* used by one thread at a time */

struct trib_model_opts {
    size_t total; /* elements of the plan's vector */
    size_t piece; /* elements of each chunk; the last may have fewer */
    int rank;
    int ranks;
    bool mean; /* the encoded sum is divided by ranks */
    uint64_t seed; /* the same on all ranks */
};

/**
 * trib_model_create - create the model of a TRIB_CODEC_MODEL codec, which must outlive
 * it.
 *
 * errors   TRIB_ERR_NO_MEMORY; TRIB_ERR_CODEC, TRIB_ERR_UNSUPPORTED: chunks are too
 *          small or too large, or a library is not installed
 * owner    caller; free with trib_model_destroy, which accepts NULL
 */
trib_status_t trib_model_create(const struct trib_codec *codec,
                                const struct trib_model_opts *opts,
                                struct trib_error *err, struct trib_model **out);
void trib_model_destroy(struct trib_model *m);

/**
 * trib_model_seed - set another opts.seed, the same on all ranks.
 *
 * Redraws everything drawn with the old seed. Call before the first start or
 * trib_model_read.
 */
void trib_model_seed(struct trib_model *m, uint64_t seed);

/** trib_model_trained_bytes - return the bytes that a rank sends per chunk of n
 * elements when not learning, agreement included. All chunks have n elements. */
size_t trib_model_trained_bytes(const struct trib_codec *c, size_t n);

/** trib_model_begin - begin a start, numbered from 1; after trib_model_exchanged. */
void trib_model_begin(struct trib_model *m, uint32_t step);

/** trib_model_epoch - return the epoch of this start's encoded chunks; 0: unchanged
 * elements. */
uint32_t trib_model_epoch(const struct trib_model *m);

/** trib_model_learning - return true if the model learns in this start, false if it
 * only codes. */
bool trib_model_learning(const struct trib_model *m);

/**
 * trib_model_train - run starts of a single rank on one vector until the model stops
 * learning.
 *
 * For tools that show the trained behaviour.
 * x        n elements; each start uses one piece of x
 * errors   TRIB_ERR_NO_MEMORY, and those of trib_model_exchanged
 */
trib_status_t trib_model_train(struct trib_model *m, const float *x, size_t n,
                               struct trib_error *err);

/** trib_model_exchange_floats - return the floats of the exchanged vector; 0: never
 * exchanges. */
size_t trib_model_exchange_floats(const struct trib_model *m);

/**
 * trib_model_exchange - return true if a vector is exchanged before start number
 * `step`.
 *
 * All ranks return the same. Start number step - 1 must be complete.
 * own_out  trib_model_exchange_floats floats: this rank's contribution, if true
 */
bool trib_model_exchange(struct trib_model *m, uint32_t step, float *own_out);

/** trib_model_exchanged - process the sum of the ranks' contributions; errors
 * TRIB_ERR_CODEC. */
trib_status_t trib_model_exchanged(struct trib_model *m, const float *sum,
                                   struct trib_error *err);

/* Elements [first, first + n) of the vector, after a whole number of pieces. */
struct trib_model_chunk {
    size_t first;
    size_t n;
    const float *agreed; /* settled share of all ranks; NULL with a single rank */
};

/**
 * trib_model_propose - write this rank's share, which the ranks sum before they encode
 * c.
 *
 * x        c->n elements to encode
 * proposal_out  trib_codec_agreed_floats(opts.piece) floats
 */
void trib_model_propose(struct trib_model *m, const struct trib_model_chunk *c,
                      const float *x, float *proposal_out);

/** trib_model_propose_added - as trib_model_propose, for x + residual, which replaces
 * the residual. */
void trib_model_propose_added(struct trib_model *m, const struct trib_model_chunk *c,
                              const float *x, float *residual, float *proposal_out);

/** trib_model_settle - turn the sum of all ranks' shares into the share for c->agreed,
 * in place. */
void trib_model_settle(struct trib_model *m, const struct trib_model_chunk *c,
                       float *share);

/**
 * trib_model_result - decode the encoded sum of a chunk; the model learns from it.
 *
 * errors   TRIB_ERR_CODEC: the bytes are not valid for this epoch and chunk
 */
trib_status_t trib_model_result(struct trib_model *m, const struct trib_model_chunk *c,
                                const uint8_t *src, size_t len, float *x_out);

/**
 * trib_model_describe - describe the state of training in half a line; "" if there is
 * nothing to say.
 *
 * text     NULL is allowed if bytes is 0
 * returns  the number of characters, as snprintf
 */
size_t trib_model_describe(const struct trib_model *m, char *text, size_t bytes);

/**
 * trib_model_bytes, trib_model_write, trib_model_read - save and restore the model's
 * state.
 *
 * bytes    trib_model_bytes(m): the same for all models of the same codec and opts
 * errors   TRIB_ERR_MISMATCH: the bytes are invalid; the model is then unchanged
 */
size_t trib_model_bytes(const struct trib_model *m);
void trib_model_write(const struct trib_model *m, uint8_t *out);
trib_status_t trib_model_read(struct trib_model *m, const uint8_t *src, size_t len,
                              struct trib_error *err);

#endif
