/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Worker threads encode inputs ahead while the engine moves data. They encode a bounded
 * number of the next chunks, each once the caller has fed its elements and the ranks
 * have agreed on its scales.
 *
 * An encoded chunk does not depend on the encoding thread: noise is a function of
 * element positions, and the plan's state (residual, states of its rule, mask of sent
 * elements) is separate for each chunk. Nothing is encoded ahead if two chunks share a
 * byte of that mask, or if a plan has too few or too small chunks to gain.
 *
 * The engine takes an encoded chunk when it is due. If no worker has begun it, the
 * engine encodes it, as without workers; if a worker is encoding it, the task is not
 * ready. While the engine is otherwise idle, it also encodes the next chunk ahead.
 *
 * No worker is active after an operation has ended or failed: the caller and the plan
 * may use their memory again.
 */
#ifndef PIPELINE_PAYLOAD_ENCODE_AHEAD_H
#define PIPELINE_PAYLOAD_ENCODE_AHEAD_H

#include "pipeline/run/chunk.h"

/**
 * trib_encode_ahead_prepare - create run->payload->encode_ahead for a run with a codec,
 * if workers help.
 *
 * errors   TRIB_ERR_NO_MEMORY; TRIB_ERR_SYSTEM with an error message if threads cannot
 *          be started
 */
trib_status_t trib_encode_ahead_prepare(struct trib_engine *e, struct trib_run *run);
void trib_encode_ahead_dispose(struct trib_run *run);

/** trib_encode_ahead_is_used - return true if workers may encode for the run. */
bool trib_encode_ahead_is_used(const struct trib_run *run);

/** trib_encode_ahead_begin, trib_encode_ahead_end - begin and end an operation; no
 * worker is active after its end. */
void trib_encode_ahead_begin(struct trib_run *run);
void trib_encode_ahead_end(struct trib_engine *e, struct trib_run *run);

/** trib_encode_ahead_post - hand the next chunks to workers. */
void trib_encode_ahead_post(struct trib_engine *e, struct trib_run *run);

/** trib_encode_ahead_help - encode the next chunk here if a task waits for a worker;
 * return false if no task waits or no chunk is left. */
bool trib_encode_ahead_help(struct trib_engine *e, struct trib_run *run);

/** trib_encode_ahead_ready - return true if no worker is encoding t's chunk. Check this
 * last, and then run t at once. */
bool trib_encode_ahead_ready(struct trib_engine *e, struct trib_run *run,
                             const struct trib_task *t);

/**
 * trib_encode_ahead_take - take the encoded input of t, if a worker has encoded it.
 *
 * Call once for each encoded chunk, when it is due, after trib_encode_ahead_ready.
 * word     a buffer of the run; swapped with the buffer of the encoded chunk
 */
bool trib_encode_ahead_take(struct trib_engine *e, struct trib_run *run,
                            const struct trib_task *t, uint8_t **word,
                            uint32_t *len_out);

#endif
