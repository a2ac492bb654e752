/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers that encode inputs ahead, while the engine moves bytes: a bounded number of
 * the chunks that come next, each once the caller has named its elements as ready and
 * the ranks have agreed on its scales.
 *
 * A code word does not depend on the thread that makes it: noise is a function of the
 * elements' positions, and the state that a plan keeps (residual, states of its rule,
 * mask of sent elements) is the chunk's alone. Nothing is encoded ahead where two
 * chunks share a byte of that mask, or where a plan has too few or too small chunks to
 * gain.
 *
 * The engine takes a code word when it is due. If no worker has begun it, the engine
 * encodes it, as without workers; if a worker is at it, the task is not ready. While
 * the engine can do nothing else it makes the next code word ahead, too.
 *
 * An operation that ends, also by a failure, leaves no worker at work: the caller and
 * the plan have their memory back.
 */
#ifndef PIPELINE_PAYLOAD_ENCODE_AHEAD_H
#define PIPELINE_PAYLOAD_ENCODE_AHEAD_H

#include "pipeline/engine/chunk.h"

/**
 * trib_encode_ahead_prepare - make run->payload->encode_ahead for a run with a codec,
 * if workers gain by it.
 *
 * errors   TRIB_ERR_NO_MEMORY; TRIB_ERR_SYSTEM with a sentence where threads do not
 *          start
 */
trib_status_t trib_encode_ahead_prepare(struct trib_engine *e, struct trib_run *run);
void trib_encode_ahead_dispose(struct trib_run *run);

/** trib_encode_ahead_is_used - true if workers may encode for the run. */
bool trib_encode_ahead_is_used(const struct trib_run *run);

/** trib_encode_ahead_begin, trib_encode_ahead_end - begin and end an operation; after
 * its end no worker is at it. */
void trib_encode_ahead_begin(struct trib_run *run);
void trib_encode_ahead_end(struct trib_engine *e, struct trib_run *run);

/** trib_encode_ahead_post - hand the next chunks to workers. */
void trib_encode_ahead_post(struct trib_engine *e, struct trib_run *run);

/** trib_encode_ahead_help - make the next code word here if a task waits for a worker;
 * false if none waits or none is left. */
bool trib_encode_ahead_help(struct trib_engine *e, struct trib_run *run);

/** trib_encode_ahead_ready - true if no worker is at t's code word. The caller asks
 * last: then t runs now. */
bool trib_encode_ahead_ready(struct trib_engine *e, struct trib_run *run,
                             const struct trib_task *t);

/**
 * trib_encode_ahead_take - take the code word of the input that t encodes, if a worker
 * has made it.
 *
 * To be called once for each word, as it is due, and after trib_encode_ahead_ready.
 * word     a buffer of the run; the one that the word is in takes its place
 */
bool trib_encode_ahead_take(struct trib_engine *e, struct trib_run *run,
                            const struct trib_task *t, uint8_t **word,
                            uint32_t *len_out);

#endif
