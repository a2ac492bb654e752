/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's worker threads (TRIB_ENCODE_THREADS), and sums and copies of large raw
 * chunks that are split over them.
 *
 * A chunk is split into parts of whole elements, and of whole pairs for the ops that
 * take pairs. Each is computed by itself, so the bits depend neither on the parts nor
 * on the threads. A split returns only when all parts are done: outside of it no worker
 * accesses the caller's memory or a peer's, however the operation ends.
 *
 * Waking a worker takes this thread some 8 us, half as long as the sum of 256 KiB. So
 * sleeping workers are woken only for chunks of TRIB_PARTS_WAKE, or if a chunk follows
 * another so soon that they would still have polled for it. Chunks below
 * TRIB_PARTS_CHUNK are never split. Nothing is split on a host with more ranks than
 * cores, if this rank may use only one core by its affinity or quota, or by an
 * aggregator, whose host has threads for many jobs.
 */
#ifndef PIPELINE_PAYLOAD_CHUNK_PARTS_H
#define PIPELINE_PAYLOAD_CHUNK_PARTS_H

#include "pipeline/run/engine_state.h"

enum {
    TRIB_PARTS_CHUNK = 256 << 10, /* bytes: the least that is split */
    TRIB_PARTS_WAKE = 1 << 20, /* bytes: the least for which workers are woken */
    TRIB_PARTS_BYTES = 32 << 10, /* bytes of a part, less up to an element */
};

/**
 * trib_parts_workers - start the engine's workers, if they are not running.
 *
 * errors   TRIB_ERR_SYSTEM with an error message
 */
trib_status_t trib_parts_workers(struct trib_engine *e);

/**
 * trib_parts_prepare - let workers share the sums and copies of a run without a codec,
 * if its chunks are large enough.
 *
 * errors   as for trib_parts_workers
 */
trib_status_t trib_parts_prepare(struct trib_engine *e, const struct trib_run *run);

/** trib_parts_is_used - return true if workers may share sums and copies of the run. */
bool trib_parts_is_used(const struct trib_engine *e, const struct trib_run *run);

/** trib_parts_wanted - return true if a chunk of this size is split. */
static inline bool trib_parts_wanted(const struct trib_engine *e, size_t bytes)
{
    return __builtin_expect(e->splits, 0) && bytes >= TRIB_PARTS_CHUNK;
}

/**
 * trib_parts_run - call work for parts of n elements on workers and here, or for all
 * elements here.
 *
 * The caller has checked trib_parts_wanted.
 * work     called concurrently, for n elements from `first` on
 */
void trib_parts_run(struct trib_engine *e, size_t n, size_t element,
                    void (*work)(const void *arg, size_t first, size_t n),
                    const void *arg);

/** trib_parts_copy - memcpy. */
void trib_parts_copy(struct trib_engine *e, void *dst, const void *src, size_t bytes);

/** trib_parts_copy_stream - kernels->copy_stream. */
void trib_parts_copy_stream(struct trib_engine *e, void *dst, const void *src,
                            size_t bytes);

#endif
