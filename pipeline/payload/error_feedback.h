/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a plan's feedback rule between operations (compress/feedback_ops.h), and
 * the calls that apply the rule. In each operation a rank reads its contribution to a
 * chunk once, encodes it once, and receives one result. The residual belongs to the
 * encoder.
 *
 * A rule may sum its states. Its result equals the sum, or mean, of all ranks' states
 * up to rounding only if ranks forward received data unchanged. Sparse codecs do,
 * because their sums are sent whole; other codecs do with an algorithm without inner
 * nodes (flat). comm/ refuses the rest. If a sum is NaN or Inf, all ranks see it,
 * return it to the caller once, and restart at 0 there.
 */
#ifndef PIPELINE_PAYLOAD_ERROR_FEEDBACK_H
#define PIPELINE_PAYLOAD_ERROR_FEEDBACK_H

#include "pipeline/run/chunk.h"

struct trib_feedback {
    /* The rule's functions; NULL if its only state is the residual. */
    const struct trib_feedback_ops *ops;
    float *residual; /* [total] encoding errors of the contributions, or NULL. With
                      * by_caller: the vector of the running operation */
    bool by_caller; /* trib_feedback_by_caller */
    /* With by_caller, marks of the elements of each chunk's result that may be nonzero
     * (codec.h). They hold for the memory of the previous operation's result. */
    uint64_t *marks;
    size_t marks_each; /* 64-bit words per chunk */
    const void *marked;
    /* States of the rule between operations, [total] each, or NULL. */
    float *state[TRIB_FEEDBACK_STATES];
    float *cleared; /* state that is cleared where an element was sent; or NULL */
    struct trib_carried *carried; /* for each chunk (struct trib_encode), if the codec
                                   * selects and has a residual; or NULL. Not part of a
                                   * plan's saved state: sent data does not depend on
                                   * it */
    size_t n_carried;
    bool *zeros; /* [n_carried] chunks whose result memory is all 0, because encoding
                  * the contribution in the same memory has cleared it */
    uint8_t *sent; /* elements sent in the newest operation: bit i % 8 of byte i / 8;
                    * sparse sums only */
    /* State of the running operation. */
    float *partial; /* [total] partial sums, which f16 and bf16 would round, if the rule
                     * sums its states; or NULL */
    float scale; /* factor of the input, from clipping */
    bool coded;     /* a plan of one rank encodes too */
};

/** trib_feedback_of - return the feedback state of a run; NULL: the run is not
 * prepared. */
const struct trib_feedback *trib_feedback_of(const struct trib_run *run);

/** trib_feedback_feeds_back - return true if the encoder keeps the encoding error of a
 * vector for the next one. */
bool trib_feedback_feeds_back(const struct trib_run *run);

/** trib_feedback_bytes - return an upper bound, slightly high, of the bytes that
 * trib_feedback_prepare allocates for an aggregator; only ranks have a residual
 * (agg_sum.h). */
uint64_t trib_feedback_bytes(const struct trib_run *run);

/** trib_feedback_prepare - allocate the state that run->desc.feedback needs;
 * TRIB_ERR_NO_MEMORY. */
trib_status_t trib_feedback_prepare(struct trib_run *run);
void trib_feedback_dispose(struct trib_run *run);

/** trib_feedback_loaded - note that the states were loaded. A single rank with a
 * nonzero residual then encodes, as the residual would otherwise never be sent. */
void trib_feedback_loaded(struct trib_run *run);

/** trib_feedback_begin - begin an operation: set the codec's ratio and the input scale
 * of this step. */
void trib_feedback_begin(struct trib_engine *e, struct trib_run *run);

/** trib_feedback_clip - set the scale of this step from the norm of the input. */
void trib_feedback_clip(struct trib_engine *e, struct trib_run *run);

/**
 * trib_feedback_apply - return the input of a chunk as the codec should encode it.
 *
 * x        c->n elements from the caller; may be in stage
 * stage    c->n floats of work memory
 * returns  x, or stage, or memory of the feedback; valid until the chunk was encoded
 * thread   any; one thread per chunk
 */
const float *trib_feedback_apply(const struct trib_engine *e,
                                 const struct trib_run *run, const struct trib_chunk *c,
                                 const float *x, float *stage);

/** trib_feedback_sent - return the mask that encoding the input updates; false if
 * none. */
bool trib_feedback_sent(const struct trib_run *run, const struct trib_chunk *c,
                        struct trib_sent *sent_out);

/**
 * trib_feedback_zeros - return the memory that encoding x may clear: the result's
 * memory, if it holds x.
 *
 * x is read once per operation, so clearing it loses nothing. NULL: nothing may be
 * cleared, because x must be restored later or is not in the result's memory.
 */
float *trib_feedback_zeros(const struct trib_run *run, const struct trib_chunk *c,
                           const float *x);

/** trib_feedback_take_zeros - return true if the chunk's result memory is all 0; false
 * at a second call, because the first caller is about to write to it. */
bool trib_feedback_take_zeros(struct trib_run *run, const struct trib_chunk *c);

/** trib_feedback_end - end an operation: the caller owns its vector again. */
void trib_feedback_end(struct trib_run *run);

/** trib_feedback_marks - return the marks of a chunk's result; NULL: no marks, write
 * all of the result. */
uint64_t *trib_feedback_marks(const struct trib_run *run, const struct trib_chunk *c);

/** trib_feedback_mark_all - mark all elements of the chunk's result as possibly
 * nonzero. */
void trib_feedback_mark_all(const struct trib_run *run, const struct trib_chunk *c);

/** trib_feedback_encoded - note that the rank has encoded its contribution. */
void trib_feedback_encoded(const struct trib_engine *e, const struct trib_run *run,
                           const struct trib_chunk *c, const uint8_t *word, size_t len);

/**
 * trib_feedback_keep_rest - add the encoding error of a result to the residual, if
 * there is one.
 *
 * result   c->n elements, overwritten; not the input
 * times    number of contributions in an element of the result: the ranks of a mean
 */
void trib_feedback_keep_rest(struct trib_engine *e, struct trib_run *run,
                             const struct trib_chunk *c, struct trib_encoded word,
                             float *result, float times);

/** trib_feedback_release - add `one` times the residual to the sum, if this schedule
 * encodes no sum here but an earlier schedule did. */
void trib_feedback_release(const struct trib_engine *e, struct trib_run *run,
                           const struct trib_chunk *c, float one);

/** trib_feedback_gives_result - return true if the rule computes the result from the
 * sum of the encoded chunks. */
bool trib_feedback_gives_result(const struct trib_run *run);

/**
 * trib_feedback_result - let the rule compute the result of a chunk, and store the
 * result.
 *
 * word     an encoded chunk of len bytes, or NULL: the elements in run->payload->acc
 * errors   TRIB_ERR_CODEC as trib_codec_decode_add
 */
trib_status_t trib_feedback_result(struct trib_engine *e, struct trib_run *run,
                                   const struct trib_chunk *c, const uint8_t *word,
                                   size_t len);

#endif
