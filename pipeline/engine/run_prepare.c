/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prepare a run before its first start: its links, and all the memory that it uses.
 * Feed it piecewise after that.
 */
#include <assert.h>
#include <stdlib.h>

#include "pipeline/engine/engine.h"
#include "pipeline/engine/short_path.h"
#include "pipeline/payload/payload.h"

/* Chunk size in bytes below which two copies in cache cost less than a read. In a
 * gather the other ranks copy to the root's slots while the root copies its own
 * block. */
enum { READ_MIN = 16384, READ_MIN_ROOT = 32768 };

uint64_t trib_run_bytes(const struct trib_engine *e, const struct trib_run *run,
                        uint64_t *results_out)
{
    const struct trib_program *p = &run->program;

    return trib_payload_bytes(e, run, results_out) +
           (p->n_tasks + p->n_contribs + 2) *
               (sizeof(*p->tasks) + sizeof(*p->contribs)) +
           (uint64_t)e->size * sizeof(*p->neighbors);
}

/* Allocate the counters of an input that is fed piecewise. */
static trib_status_t prepare_feed(struct trib_run *run)
{
    const size_t chunks = (size_t)trib_run_rounds(run) * run->desc.n_chunks;

    if (run->desc.op.feed == TRIB_FEED_WHOLE || run->is_aggregator)
        return TRIB_OK;
    run->now.unfed = calloc(chunks, sizeof(*run->now.unfed));
    return run->now.unfed ? TRIB_OK : TRIB_ERR_NO_MEMORY;
}

/* Return true if some peer can read this rank's memory by address, and this pays off.
 * It does not pay off for small chunks, nor for sums that are forwarded, which are
 * computed in the next rank's slots. Nor does it where ranks share a core, and so the
 * cache of the slots. Checksums need memory that both sides see. */
static bool some_read(const struct trib_engine *e, const struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;
    const size_t least = d->op.coll == TRIB_GATHER ? READ_MIN_ROOT : READ_MIN;

    if (!d->zero_copy || d->codec || d->check.sum || d->may_undo || e->oversubscribed ||
        d->op.coll == TRIB_ALLREDUCE || d->op.coll == TRIB_REDUCE ||
        d->piece * d->element < least)
        return false;
    for (uint32_t i = 0; i < run->program.n_neighbors; i++)
        if (e->links[run->program.neighbors[i].peer].reads)
            return true;
    return false;
}

static trib_status_t connect_neighbors(struct trib_engine *e,
                                       const struct trib_run *run,
                                       const char *operation)
{
    const struct trib_program *program = &run->program;
    trib_status_t st = TRIB_OK;
    uint32_t fresh = 0;

    for (uint32_t i = 0; i < program->n_neighbors; i++)
        fresh += !e->links[program->neighbors[i].peer].connected;
    bool *which = fresh > 1 ? calloc((size_t)e->size, sizeof(*which)) : NULL;
    for (uint32_t i = 0; i < program->n_neighbors && which; i++)
        which[program->neighbors[i].peer] = true;
    if (which)
        trib_engine_connect_many(e, which, e->size);
    free(which);
    for (uint32_t i = 0; i < program->n_neighbors && st == TRIB_OK; i++)
        st = trib_engine_connect(e, program->neighbors[i].peer, operation);
    return st;
}

trib_status_t trib_run_prepare(struct trib_engine *e, struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;
    const char *operation =
        d->op.leaving ? "trib_free_comm" : trib_coll_name(d->op.coll);
    trib_status_t st;

    assert(!run->payload && d->rounds > 0 && d->element > 0);
    e->page_run = NULL; /* another run may have been at this address */
    run->is_aggregator = trib_engine_is_aggregator(e);
    run->no_result =
        run->is_aggregator || (d->op.coll == TRIB_REDUCE && (int)d->op.root != e->rank);
    st = connect_neighbors(e, run, operation);
    if (st != TRIB_OK)
        return st;
    run->reads = some_read(e, run);
    run->now.frame = (struct trib_frame){
        .magic = TRIB_FRAME_MAGIC,
        .count = d->blocks && d->blocks->local ? TRIB_FRAME_COUNT_LISTED : d->count,
        .signature = trib_frame_signature(&d->op),
        .digest = d->digest};
    st = prepare_feed(run);
    if (st == TRIB_OK)
        st = trib_payload_prepare(e, run);
    if (st == TRIB_OK)
        st = trib_short_prepare(e, run);
    if (st == TRIB_ERR_NO_MEMORY)
        return trib_fail(e->err, st, "no memory for a plan of %zu elements", d->count);
    return st;
}

void trib_run_dispose(struct trib_run *run)
{
    trib_short_dispose(run);
    trib_payload_dispose(run);
    free((void *)run->now.unfed);
    trib_program_free(&run->program);
}

/* Return the number of elements of [first, end) in the chunk of `first`. */
static uint32_t in_chunk(const struct trib_run *run, size_t first, size_t end)
{
    assert(first < end);
    size_t to = (first / run->desc.piece + 1) * run->desc.piece;

    return (uint32_t)((end < to ? end : to) - first);
}

bool trib_run_feed(struct trib_run *run, size_t first, size_t count)
{
    size_t piece = run->desc.piece, end = first + count;
    uint32_t n;

    for (size_t at = first; run->now.unfed && at < end; at += n) {
        n = in_chunk(run, at, end);
        if (atomic_load_explicit(&run->now.unfed[at / piece], memory_order_relaxed) < n)
            return false;
    }
    for (size_t at = first; run->now.unfed && at < end; at += n) {
        n = in_chunk(run, at, end);
        atomic_fetch_sub_explicit(&run->now.unfed[at / piece], n, memory_order_release);
    }
    return true;
}
