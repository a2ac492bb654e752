/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Own contributions that workers encode ahead, while the engine moves bytes: those of
 * the chunks that come next, a bounded number of them, each once its elements were fed
 * and the ranks have agreed on its scales.
 *
 * What a word says does not depend on who makes it: noise is a function of the
 * elements' positions, and what a plan keeps (residual, momentum, h, which elements
 * were sent) is the chunk's own. Where two chunks would share a byte of that, in the
 * mask of what was sent, and where a plan has too few or too small chunks to gain,
 * nothing is made ahead.
 *
 * When a word is due it is taken: if nobody has begun it the engine encodes it itself,
 * as without workers; if a worker is at it the task is not ready. While nothing else
 * can be done the engine makes the next word ahead, too.
 *
 * An operation that ends, also by a failure, leaves no worker at work: the caller's
 * memory and the plan's are theirs again.
 */
#ifndef PIPELINE_PAYLOAD_ENCODE_AHEAD_H
#define PIPELINE_PAYLOAD_ENCODE_AHEAD_H

#include "pipeline/engine/chunk.h"

/**
 * trib_encode_ahead_prepare - of a run with a codec; makes run->payload->encode_ahead
 * if there is to be one.
 *
 * errors   TRIB_ERR_NO_MEMORY; TRIB_ERR_SYSTEM with a sentence where threads do not
 *          start
 */
trib_status_t trib_encode_ahead_prepare(struct trib_engine *e, struct trib_run *run);
void trib_encode_ahead_dispose(struct trib_run *run);

/** trib_encode_ahead_is_used - true if workers may encode for the run. */
bool trib_encode_ahead_is_used(const struct trib_run *run);

/** trib_encode_ahead_begin, trib_encode_ahead_end - an operation begins; it ends, no
 * worker is at it. */
void trib_encode_ahead_begin(struct trib_run *run);
void trib_encode_ahead_end(struct trib_engine *e, struct trib_run *run);

/** trib_encode_ahead_post - hand workers what is to be encoded next. */
void trib_encode_ahead_post(struct trib_engine *e, struct trib_run *run);

/** trib_encode_ahead_help - make the next word here, if a task waits for a worker;
 * false: it need not, or there is none. */
bool trib_encode_ahead_help(struct trib_engine *e, struct trib_run *run);

/** trib_encode_ahead_ready - call it last: may t be done, as far as workers go? Then t
 * is done now. */
bool trib_encode_ahead_ready(struct trib_engine *e, struct trib_run *run,
                             const struct trib_task *t);

/**
 * trib_encode_ahead_take - the word of the own contribution that t encodes, if it was
 * made ahead.
 *
 * To be called once for each word, as it is due, and after trib_encode_ahead_ready.
 * word     a buffer of the run; the one that the word is in takes its place
 */
bool trib_encode_ahead_take(struct trib_engine *e, struct trib_run *run,
                            const struct trib_task *t, uint8_t **word,
                            uint32_t *len_out);

#endif
