/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state that a plan keeps between operations beside the residual of EF14
 * (engine.h), and the points at which it enters: the own contribution of a chunk is
 * read once per operation, its code word is made once, and its result comes once. The
 * rules are in compress/feedback_rule.h.
 *
 * EF21 keeps sum == the sum, or mean, of all ranks' own to rounding only where what the
 * ranks sent is summed and passed on as it is: sparse codecs do, whose sums travel
 * whole; others by an algorithm without inner nodes (flat). comm/ refuses the rest.
 * Where a sum comes out NaN or Inf all ranks see it, hand it out once, and begin again
 * at 0 there.
 */
#ifndef PIPELINE_PAYLOAD_ERROR_FEEDBACK_H
#define PIPELINE_PAYLOAD_ERROR_FEEDBACK_H

#include "pipeline/engine/run.h"

/** trib_feedback_feeds_back - is what the codec leaves out of a vector kept for the
 * next one? */
bool trib_feedback_feeds_back(const struct trib_run *run);

/** trib_feedback_bytes - what trib_feedback_prepare will allocate of a service, or a
 * little more: the residual is of ranks alone (service_sum.h). */
uint64_t trib_feedback_bytes(const struct trib_run *run);

/** trib_feedback_prepare - allocate what run->desc.feedback wants;
 * TRIB_ERR_NO_MEMORY. */
trib_status_t trib_feedback_prepare(struct trib_run *run);
void trib_feedback_dispose(struct trib_run *run);

/** trib_feedback_begin - an operation begins: ratio of this step, norm of its
 * vector. */
void trib_feedback_begin(struct trib_engine *e, struct trib_run *run);

/** trib_feedback_clip - of these the norm. */
void trib_feedback_clip(struct trib_engine *e, struct trib_run *run);

/**
 * trib_feedback_apply - what the codec gets of the own contribution of a chunk.
 *
 * x        c->n elements, as the caller gave them; may be in stage
 * stage    c->n floats for what it makes of them
 * returns  x, or stage, or memory of the feedback; good until the chunk was encoded
 * thread   any; of one chunk one thread
 */
const float *trib_feedback_apply(const struct trib_engine *e,
                                 const struct trib_run *run, const struct trib_chunk *c,
                                 const float *x, float *stage);

/** trib_feedback_sent - what an encode of the own contribution is to mark; false:
 * nothing. */
bool trib_feedback_sent(const struct trib_run *run, const struct trib_chunk *c,
                        struct trib_sent *sent_out);

/** trib_feedback_encoded - EF21: the own contribution went out as this code word. */
void trib_feedback_encoded(const struct trib_run *run, const struct trib_chunk *c,
                           const uint8_t *word, size_t len);

/**
 * trib_feedback_result - EF21: add what a chunk's result brings, put the sum to its
 * place.
 *
 * word     a code word of len bytes, or NULL: the elements in run->acc
 * errors   TRIB_ERR_CODEC as trib_codec_decode_add
 */
trib_status_t trib_feedback_result(struct trib_engine *e, struct trib_run *run,
                                   const struct trib_chunk *c, const uint8_t *word,
                                   size_t len);

#endif
