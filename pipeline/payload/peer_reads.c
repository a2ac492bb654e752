/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/peer_reads.h"

#include <assert.h>
#include <stdlib.h>

#include "pipeline/payload/chunk_memory.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/run/run_buffers.h"

enum {
    COPY_AHEAD = 1 << 20, /* bytes of a read to the final place */
    SUM_AHEAD = 256 << 10, /* bytes of a read for a sum, which uses the cache */
    MEMORY_MAX = 4 << 20, /* bytes of memory above which nothing is read ahead */
};

/* The rounds [from, to) of a contribution in its memory. */
struct held {
    uint8_t *at;
    uint32_t from, to;
};

struct trib_peer_reads {
    size_t most; /* maximum elements of a read for a sum; a multiple of a chunk */
    size_t n; /* number of contributions */
    uint8_t *memory;
    struct held held[];
};

bool trib_reads_named(const struct trib_neighbor *neighbor, const struct trib_frame *f,
                      struct trib_peer_chunk *out)
{
    const bool recv = trib_frame_source(f) == TRIB_SOURCE_RECV;

    *out = (struct trib_peer_chunk){
        neighbor->peer, recv ? &neighbor->peer_recv : &neighbor->peer_send, !recv};
    return f->kind == TRIB_FRAME_GET && f->bytes == 0 && out->view->addressed;
}

static uint32_t count_sums(const struct trib_run *run)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < run->program.n_tasks; i++)
        n += run->program.tasks[i].kind == TRIB_TASK_REDUCE;
    return n;
}

/* With several sums, their chunks would evict each other from the memory of a
 * contribution. */
static size_t most_of_sum(const struct trib_run *run, size_t contribs)
{
    const size_t chunk = run->desc.piece * run->desc.element;
    size_t bytes = MEMORY_MAX / contribs;

    bytes = bytes < SUM_AHEAD ? bytes : SUM_AHEAD;
    return bytes > chunk && count_sums(run) == 1 ? bytes / chunk * run->desc.piece
                                                 : run->desc.piece;
}

trib_status_t trib_reads_prepare(struct trib_run *run)
{
    const size_t n = run->reads ? trib_run_most_contribs(run) : 0;

    if (n == 0)
        return TRIB_OK;
    struct trib_peer_reads *r = calloc(1, sizeof(*r) + n * sizeof(r->held[0]));
    if (!r)
        return TRIB_ERR_NO_MEMORY;
    run->payload->reads = r;
    r->n = n;
    r->most = most_of_sum(run, n);
    const size_t stride = (r->most * run->desc.element + 63) / 64 * 64;
    r->memory = aligned_alloc(64, n * stride);
    for (size_t i = 0; i < n && r->memory; i++)
        r->held[i].at = r->memory + i * stride;
    return r->memory ? TRIB_OK : TRIB_ERR_NO_MEMORY;
}

void trib_reads_dispose(struct trib_run *run)
{
    struct trib_peer_reads *r = run->payload->reads;

    if (r)
        free(r->memory);
    free(r);
}

void trib_reads_begin(struct trib_run *run)
{
    struct trib_peer_reads *r = run->payload->reads;

    for (size_t i = 0; r && i < r->n; i++)
        r->held[i].from = r->held[i].to = 0;
}

/* Return the first element of the vector after the chunks of t that follow c without a
 * gap. */
static size_t end_of_row(const struct trib_run *run, const struct trib_task *t,
                         const struct trib_chunk *c)
{
    const struct trib_run_desc *d = &run->desc;

    if (d->cut == TRIB_CUT_LISTED)
        return d->blocks->at[t->chunk].in + d->blocks->at[t->chunk].n_out;
    if (d->cut == TRIB_CUT_BLOCKED)
        return ((size_t)t->chunk + 1) * d->count;
    return d->n_chunks == 1 ? d->total : c->first + c->n;
}

/* Read chunk c and up to `most` elements that follow it and are ready. Return the
 * number of rounds read; 0: none. */
static uint32_t read_from(struct trib_engine *e, struct trib_run *run,
                          const struct trib_task *t, const struct trib_chunk *c,
                          const struct trib_peer_chunk *from, size_t most, uint8_t *to)
{
    const size_t size = run->desc.element, lo = c->first * size;
    const struct trib_view *view = from->view;
    size_t n = c->n;

    assert(view->addressed && c->n <= run->desc.piece);
    if (lo < view->lo || lo + c->n * size > view->hi)
        return 0;
    if (from->input && run->desc.op.feed == TRIB_FEED_WHOLE) {
        const size_t row = end_of_row(run, t, c) - c->first;
        const size_t granted = (view->hi - lo) / size;
        n = row < granted ? row : granted;
        n = n < most ? n : most;
    }
    n = n > c->n ? n : c->n;
    if (!trib_engine_read(e, from->peer, (uint64_t)view->origin + lo, to, n * size))
        return 0;
    e->stats.copied_bytes += n * size;
    return (uint32_t)((n + run->desc.piece - 1) / run->desc.piece);
}

bool trib_reads_copy_in(struct trib_engine *e, struct trib_run *run,
                        struct trib_task *t, const struct trib_chunk *c,
                        const struct trib_peer_chunk *from)
{
    const size_t chunk = run->desc.piece * run->desc.element;
    /* In place an exclusive scan would overwrite contributions that are not sent
     * yet. */
    const bool alone = trib_coll_is_prefix(run->desc.op.coll) && !run->now.input_stays;
    const size_t rounds = COPY_AHEAD > chunk && !alone ? COPY_AHEAD / chunk : 1;

    if (t->done < t->ahead)
        return true;
    const uint32_t n =
        read_from(e, run, t, c, from, rounds * run->desc.piece, trib_run_acc(run, c));
    t->ahead = t->done + n;
    return n > 0;
}

const uint8_t *trib_reads_contrib(struct trib_engine *e, struct trib_run *run,
                                  const struct trib_task *t, ptrdiff_t i,
                                  const struct trib_chunk *c,
                                  const struct trib_peer_chunk *from)
{
    struct trib_peer_reads *r = run->payload->reads;

    if (!r)
        return NULL;
    assert(i >= 0 && (size_t)i < r->n);
    struct held *h = &r->held[i];
    if (t->done < h->from || t->done >= h->to) {
        const uint32_t n = read_from(e, run, t, c, from, r->most, h->at);
        h->from = t->done;
        h->to = r->most > run->desc.piece ? t->done + n : t->done;
        return n ? h->at : NULL;
    }
    return h->at + (size_t)(t->done - h->from) * run->desc.piece * run->desc.element;
}
