/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a chunk: the input of this rank, and the accumulator, which holds the
 * sum and finally the result.
 */
#ifndef PIPELINE_PAYLOAD_CHUNK_MEMORY_H
#define PIPELINE_PAYLOAD_CHUNK_MEMORY_H

#include "pipeline/run/chunk.h"

/** trib_task_chunk - return the chunk that t moves in its next round. */
struct trib_chunk trib_task_chunk(const struct trib_run *run,
                                  const struct trib_task *t);

/** trib_run_input - return the elements of a chunk in the caller's contribution. */
const uint8_t *trib_run_input(const struct trib_run *run, const struct trib_chunk *c);

/** trib_run_acc - return the accumulator of a chunk. */
uint8_t *trib_run_acc(const struct trib_run *run, const struct trib_chunk *c);

/** trib_peer_result - return a chunk's result in the accumulators that an aggregator
 * has advertised to this rank, or NULL. */
const uint8_t *trib_peer_result(const struct trib_run *run,
                                const struct trib_view *view,
                                const struct trib_chunk *c);

/**
 * trib_acc_free - return true if t may write to its accumulator.
 *
 * The rounds of an aggregator use the accumulators in rotation. The result of the
 * earlier round must have been sent, and read if peers read it in place.
 */
bool trib_aggregator_acc_free(const struct trib_engine *e, const struct trib_run *run,
                              const struct trib_task *t);
static inline bool trib_acc_free(const struct trib_engine *e,
                                 const struct trib_run *run, const struct trib_task *t)
{
    return !run->is_aggregator || trib_aggregator_acc_free(e, run, t);
}

#endif
