/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state that a plan keeps between operations for its rule of feedback
 * (compress/feedback_ops.h), and the points at which a rule acts: a rank reads its
 * contribution of a chunk once per operation, encodes it once, and gets one result. The
 * residual is the encoder's own.
 *
 * The result of a rule that sums its states is the sum, or mean, of all ranks' states
 * to rounding only where ranks pass on what they receive as it is: sparse codecs do,
 * whose sums travel whole; others do by an algorithm without inner nodes (flat). comm/
 * refuses the rest. If a sum is NaN or Inf all ranks see it, give it to the caller
 * once, and begin again at 0 there.
 */
#ifndef PIPELINE_PAYLOAD_ERROR_FEEDBACK_H
#define PIPELINE_PAYLOAD_ERROR_FEEDBACK_H

#include "pipeline/engine/chunk.h"

struct trib_feedback {
    /* The rule's functions; NULL if it keeps no state but the residual. */
    const struct trib_feedback_ops *ops;
    float *residual; /* [total] loss of the encoding of contributions, or NULL. By
                      * caller: the vector of the running operation */
    bool by_caller; /* trib_feedback_by_caller */
    /* With by_caller, marks of the elements of each chunk's result that may be other
     * than 0 (codec.h); they hold for the memory of the last operation's result. */
    uint64_t *marks;
    size_t marks_each; /* words of a chunk */
    const void *marked;
    /* States of the rule from operation to operation, [total] each, or NULL. */
    float *state[TRIB_FEEDBACK_STATES];
    float *cleared; /* state that is 0 where an element was sent; or NULL */
    struct trib_carried *carried; /* of each chunk (struct trib_encode), of a codec that
                           * selects and has a residual; or NULL. No part of the state
                           * of a plan: what is sent does not depend on them */
    size_t n_carried;
    bool *zeros; /* [n_carried] chunks whose result is all 0 by now: the encoding
                  * of the contribution, which it replaces, has cleared it */
    uint8_t *sent; /* elements sent in the newest operation: bit i % 8 of byte i / 8;
                    * sparse sums only */
    /* The running operation's part. */
    float *partial; /* [total] sums on their way, which f16 and bf16 would round, if the
                     * rule sums its states; or NULL */
    float scale; /* factor of the input, from clipping */
    bool coded;     /* a plan of one rank encodes, too */
};

/** trib_feedback_of - the state of a run's feedback; NULL: the run is not prepared. */
const struct trib_feedback *trib_feedback_of(const struct trib_run *run);

/** trib_feedback_feeds_back - true if the encoder keeps what the codec leaves out of a
 * vector for the next one. */
bool trib_feedback_feeds_back(const struct trib_run *run);

/** trib_feedback_bytes - the bytes that trib_feedback_prepare will allocate for an
 * aggregator, or a little more: only ranks have a residual (agg_sum.h). */
uint64_t trib_feedback_bytes(const struct trib_run *run);

/** trib_feedback_prepare - allocate what run->desc.feedback wants;
 * TRIB_ERR_NO_MEMORY. */
trib_status_t trib_feedback_prepare(struct trib_run *run);
void trib_feedback_dispose(struct trib_run *run);

/** trib_feedback_loaded - the states come from elsewhere: a rank that is alone encodes
 * from now on if it has a residual, which would otherwise never come out. */
void trib_feedback_loaded(struct trib_run *run);

/** trib_feedback_begin - begin an operation: set the ratio of this step, and the scale
 * of its vector. */
void trib_feedback_begin(struct trib_engine *e, struct trib_run *run);

/** trib_feedback_clip - set the scale of this step from the norm of the input. */
void trib_feedback_clip(struct trib_engine *e, struct trib_run *run);

/**
 * trib_feedback_apply - the input of a chunk as the codec gets it.
 *
 * x        c->n elements, as the caller gave them; may be in stage
 * stage    c->n floats for what it makes of them
 * returns  x, or stage, or memory of the feedback; good until the chunk was encoded
 * thread   any; of one chunk one thread
 */
const float *trib_feedback_apply(const struct trib_engine *e,
                                 const struct trib_run *run, const struct trib_chunk *c,
                                 const float *x, float *stage);

/** trib_feedback_sent - the marks that an encoding of the input makes; false if it
 * makes none. */
bool trib_feedback_sent(const struct trib_run *run, const struct trib_chunk *c,
                        struct trib_sent *sent_out);

/**
 * trib_feedback_zeros - the place that an encoding of x may clear: the result's, where
 * x lies there.
 *
 * x is read once per operation, so nothing of it is lost. NULL: it may clear nothing,
 * because x has to be brought back or is not the result's memory.
 */
float *trib_feedback_zeros(const struct trib_run *run, const struct trib_chunk *c,
                           const float *x);

/** trib_feedback_take_zeros - true if the chunk's result is all 0; a second call is
 * told false, as the first is about to write there. */
bool trib_feedback_take_zeros(struct trib_run *run, const struct trib_chunk *c);

/** trib_feedback_end - end an operation: the caller has his vector back. */
void trib_feedback_end(struct trib_run *run);

/** trib_feedback_marks - the marks of a chunk's result; NULL: it has none, and all of
 * it is to be written. */
uint64_t *trib_feedback_marks(const struct trib_run *run, const struct trib_chunk *c);

/** trib_feedback_mark_all - any element of the chunk's result may be other than 0. */
void trib_feedback_mark_all(const struct trib_run *run, const struct trib_chunk *c);

/** trib_feedback_encoded - the rank has encoded its contribution as this code word. */
void trib_feedback_encoded(const struct trib_engine *e, const struct trib_run *run,
                           const struct trib_chunk *c, const uint8_t *word, size_t len);

/**
 * trib_feedback_keep_rest - add to the residual, if there is one, the part of a result
 * that its code word leaves out.
 *
 * result   c->n elements, which are lost; not those of the input
 * times    contributions that an element of the result counts for: those of a mean
 */
void trib_feedback_keep_rest(struct trib_engine *e, struct trib_run *run,
                             const struct trib_chunk *c, struct trib_encoded word,
                             float *result, float times);

/** trib_feedback_release - add `one` times the residual to the sum, if this schedule
 * encodes no sum here and an earlier one did. */
void trib_feedback_release(const struct trib_engine *e, struct trib_run *run,
                           const struct trib_chunk *c, float one);

/** trib_feedback_gives_result - true if the rule makes the result of the sum of the
 * code words. */
bool trib_feedback_gives_result(const struct trib_run *run);

/**
 * trib_feedback_result - the rule makes the result of a chunk, which goes to its place.
 *
 * word     a code word of len bytes, or NULL: the elements in run->payload->acc
 * errors   TRIB_ERR_CODEC as trib_codec_decode_add
 */
trib_status_t trib_feedback_result(struct trib_engine *e, struct trib_run *run,
                                   const struct trib_chunk *c, const uint8_t *word,
                                   size_t len);

#endif
