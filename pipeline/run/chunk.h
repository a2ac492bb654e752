/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chunks: the part of the vector that a task moves in a round.
 *
 * If the ranks first agree on values (payload_agree.h), the program has share_lead more
 * rounds than the vector. The agreement's tasks skip the last share_lead rounds, the
 * vector's tasks skip the first.
 */
#ifndef PIPELINE_RUN_CHUNK_H
#define PIPELINE_RUN_CHUNK_H

#include <assert.h>

#include "pipeline/run/run.h"

#define TRIB_CHUNK_NO_ELEMENTS 0x80000000u /* in index: no place in the vector */

/* A chunk of one round. */
struct trib_chunk {
    uint32_t index; /* number in the whole vector, as in frames */
    size_t first;   /* element of the vector */
    size_t n;       /* elements; 0 past the end of the vector */
};

/** trib_share_task - return true if t belongs to the agreement. */
static inline bool trib_share_task(const struct trib_run *run,
                                   const struct trib_task *t)
{
    return t->chunk >= run->desc.n_chunks;
}

/** trib_task_first - return the first round of t. */
static inline uint32_t trib_task_first(const struct trib_run *run,
                                       const struct trib_task *t)
{
    return trib_share_task(run, t) ? 0 : run->desc.share_lead;
}

/** trib_task_over - return true if all rounds of t are done. */
static inline bool trib_task_over(const struct trib_run *run, const struct trib_task *t)
{
    return t->done ==
           run->desc.rounds - (trib_share_task(run, t) ? run->desc.share_lead : 0);
}

/** trib_run_rounds - return the number of rounds of the vector. */
static inline uint32_t trib_run_rounds(const struct trib_run *run)
{
    return run->desc.rounds - run->desc.share_lead;
}

/** trib_block_chunk - return a chunk of listed blocks; gives: of this rank's
 * contribution, else of the result. The chunk's number counts from the first round of
 * its block, as on the peer. */
static inline struct trib_chunk trib_block_chunk(const struct trib_run *run,
                                                 uint32_t round, uint32_t chunk,
                                                 bool gives)
{
    const struct trib_run_desc *d = &run->desc;
    const struct trib_block *b = &d->blocks->at[chunk];
    const size_t n = gives ? b->n_in : b->n_out;
    const uint32_t turn = round - (gives ? b->late_in : b->late_out);
    size_t at = (size_t)turn * d->piece;

    at = at < n ? at : n;
    return (struct trib_chunk){.index = turn * d->n_chunks + chunk,
                               .first = b->in + at,
                               .n = n - at < d->piece ? n - at : d->piece};
}

/** trib_vector_chunk - return chunk `chunk` of a round of the vector. */
static inline struct trib_chunk trib_vector_chunk(const struct trib_run *run,
                                                  uint32_t round, uint32_t chunk)
{
    const struct trib_run_desc *d = &run->desc;
    size_t end = d->total;
    struct trib_chunk c;

    if (d->cut != TRIB_CUT_INTERLEAVED) {
        if (d->cut == TRIB_CUT_LISTED)
            return trib_block_chunk(run, round, chunk, false);
        c.index = round * d->n_chunks + chunk;
        c.first = (size_t)chunk * d->count + (size_t)round * d->piece;
        end = (size_t)(chunk + 1) * d->count;
    } else {
        if (d->op.feed == TRIB_FEED_BACKWARD)
            round = trib_run_rounds(run) - 1 - round;
        c.index = round * d->n_chunks + chunk;
        c.first = (size_t)c.index * d->piece;
    }
    c.first = c.first < end ? c.first : end;
    c.n = end - c.first < d->piece ? end - c.first : d->piece;
    return c;
}

/** trib_run_chunk - return the vector's chunk `chunk` in a round of the program, at or
 * after round share_lead. */
static inline struct trib_chunk trib_run_chunk(const struct trib_run *run,
                                               uint32_t round, uint32_t chunk)
{
    return trib_vector_chunk(run, round - run->desc.share_lead, chunk);
}

/** trib_chunk_fed - return true if the caller's whole contribution to c is ready. */
static inline bool trib_chunk_fed(const struct trib_run *run,
                                  const struct trib_chunk *c)
{
    return c->n == 0 || !run->now.unfed ||
           atomic_load_explicit(&run->now.unfed[c->index], memory_order_acquire) == 0;
}

/** trib_run_fed - return true if the input that t reads is ready. */
static inline bool trib_run_fed(const struct trib_run *run, const struct trib_task *t,
                                const struct trib_chunk *c)
{
    return !run->now.unfed || !(t->flags & TRIB_TASK_INPUT) || trib_chunk_fed(run, c);
}

#endif
