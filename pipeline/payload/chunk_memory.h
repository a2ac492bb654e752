/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a chunk: the input of this rank, and the accumulator, in which its sum
 * is made and its result ends up.
 */
#ifndef PIPELINE_PAYLOAD_CHUNK_MEMORY_H
#define PIPELINE_PAYLOAD_CHUNK_MEMORY_H

#include "pipeline/engine/chunk.h"

/** trib_run_input - the elements of a chunk in the caller's contribution. */
const uint8_t *trib_run_input(const struct trib_run *run, const struct trib_chunk *c);

/** trib_run_acc - the accumulator of a chunk. */
uint8_t *trib_run_acc(const struct trib_run *run, const struct trib_chunk *c);

/** trib_run_results - the accumulators that peers of an aggregator read; NULL: they
 * read none, and *bytes_out is 0. */
const uint8_t *trib_run_results(const struct trib_run *run, size_t *bytes_out);

/** trib_peer_result - a chunk's result in the accumulators that an aggregator has
 * opened to this rank; NULL: it has opened none. */
const uint8_t *trib_peer_result(const struct trib_run *run,
                                const struct trib_view *view,
                                const struct trib_chunk *c);

/**
 * trib_acc_free - true if t may write to its accumulator.
 *
 * The rounds of an aggregator take the same accumulators by turns: the result of an
 * earlier round must be sent, and read where peers read it in place.
 */
bool trib_aggregator_acc_free(const struct trib_engine *e, const struct trib_run *run,
                              const struct trib_task *t);
static inline bool trib_acc_free(const struct trib_engine *e,
                                 const struct trib_run *run, const struct trib_task *t)
{
    return !run->is_aggregator || trib_aggregator_acc_free(e, run, t);
}

#endif
