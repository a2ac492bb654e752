/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The buffers of an operation: this rank's, and those that peers have advertised to it.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/run/failure.h"
#include "pipeline/run/run_buffers.h"

enum {
    STREAM_MIN = 8 << 20, /* bytes: smaller messages stay in the reader's cache */
    BORROW_MIN = 65536, /* bytes: registering less costs as much as copying */
};

/* Make the reference of vector bytes [lo, hi) for peers within load/store reach, by
 * address if the memory is not registered. */
static void open_part(const struct trib_engine *e, const struct trib_run *run,
                      const uint8_t *ptr, const size_t part[2], struct trib_ref *out)
{
    trib_memory_ref(&e->memories, ptr, part[0], part[1], true, out);
    if (!out->blob.len && run->reads && ptr && part[1] > part[0])
        trib_ref_address(out, ptr, part[0], part[1]);
}

void trib_run_open_buffer(const struct trib_engine *e, const struct trib_run *run,
                          const uint8_t *ptr, size_t bytes, struct trib_ref *out)
{
    open_part(e, run, ptr, (size_t[]){0, bytes}, out);
}

/* Borrow a part of the caller's memory, so that transport writes from and to it bypass
 * the slots. */
static void borrow(struct trib_engine *e, struct trib_run *run, bool written,
                   const uint8_t *ptr, const size_t part[2])
{
    assert(!run->now.borrowed[written] && part[0] <= part[1]);
    if (run->desc.place && !e->all_mapped && !run->desc.quorum.need && ptr &&
        part[1] - part[0] >= BORROW_MIN)
        run->now.borrowed[written] = trib_memory_borrow(
            &e->memories, (uint8_t *)(uintptr_t)ptr, part[1] - part[0], written);
}

void trib_run_give_back(struct trib_engine *e, struct trib_run *run, bool broken)
{
    for (int i = 0; i < 2; i++) {
        if (run->now.borrowed[i])
            trib_memory_give_back(&e->memories, run->now.borrowed[i], broken && i);
        run->now.borrowed[i] = NULL;
    }
    /* A later start that fails in the queue has opened nothing. */
    run->now.input_place.region = run->now.recv_place.region = NULL;
    trib_ref_none(&run->now.advert_far.recv);
}

void trib_run_open(struct trib_engine *e, struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;
    size_t size = d->element, lo = run->now.input_first * size;
    size_t hi = d->op.coll == TRIB_ALLGATHER && lo + run->now.input_first
                    ? lo + d->count * size
                    : d->total * size;

    assert(d->zero_copy);
    trib_ref_none(&run->now.advert.recv);
    trib_ref_none(&run->now.advert_far.send);
    trib_ref_none(&run->now.advert_far.recv);
    run->now.recv_place.region = NULL;
    if (run->is_aggregator) {
        trib_ref_none(&run->now.advert.send);
        run->now.input_place.region = NULL;
        if (run->results)
            trib_memory_ref(&e->memories, run->results, 0, run->results_bytes, true,
                            &run->now.advert.recv);
        return;
    }
    if (d->codec) { /* peers get encoded chunks */
        trib_ref_none(&run->now.advert.send);
        run->now.input_place.region = NULL;
        return;
    }
    if (d->op.coll == TRIB_ALLGATHER && run->now.input != run->now.recv)
        hi = lo + d->count * size;
    run->now.input_stays = run->now.input != run->now.recv ||
                           (trib_coll_is_prefix(d->op.coll) && e->rank == 0);
    const size_t first = run->now.recv_first * size;
    const size_t end = d->op.coll == TRIB_REDUCE_SCATTER ? first + d->count * size
                                                          : d->total * size;
    /* Peers must not overwrite an input that must first be saved, nor the input of an
     * exclusive scan that others still read. */
    const bool opens = !run->no_result && d->op.coll != TRIB_EXSCAN &&
                       !(d->may_undo && run->now.input == run->now.recv);
    if (opens)
        borrow(e, run, true, run->now.recv, (size_t[]){first, end});
    borrow(e, run, false, run->now.input, (size_t[]){lo, hi});
    open_part(e, run, run->now.input, (size_t[]){lo, hi}, &run->now.advert.send);
    run->now.input_place = trib_memory_place(&e->memories, run->now.input, lo, hi);
    if (!opens)
        return;
    open_part(e, run, run->now.recv, (size_t[]){first, end}, &run->now.advert.recv);
    trib_memory_ref(&e->memories, run->now.recv, first, end, false,
                    &run->now.advert_far.recv);
    run->now.recv_place = trib_memory_place(&e->memories, run->now.recv, first, end);
}

void trib_run_open_blocks(struct trib_engine *e, struct trib_run *run)
{
    const size_t size = run->desc.element, in = run->desc.blocks->in_end * size;
    const size_t out = run->desc.blocks->out_end * size;

    trib_ref_none(&run->now.advert_far.send);
    trib_ref_none(&run->now.advert_far.recv);
    run->now.input_place.region = run->now.recv_place.region = NULL;
    if (!run->desc.zero_copy)
        return;
    if (run->desc.place) {
        assert(run->now.input != run->now.recv); /* an in-place input was copied */
        borrow(e, run, true, run->now.recv, (size_t[]){0, out});
        trib_memory_ref(&e->memories, run->now.recv, 0, out, false,
                        &run->now.advert_far.recv);
        run->now.recv_place = trib_memory_place(&e->memories, run->now.recv, 0, out);
    }
    borrow(e, run, false, run->now.input, (size_t[]){0, in});
    if (in)
        run->now.input_place = trib_memory_place(&e->memories, run->now.input, 0, in);
}

static const struct trib_block *block_between(const struct trib_engine *e,
                                              const struct trib_run *run, int from,
                                              int to)
{
    assert(run->desc.op.coll == TRIB_ALLTOALL && run->desc.blocks);
    return &run->desc.blocks->at[(to - from + e->ranks) % e->ranks];
}

void trib_run_cut_ref(const struct trib_engine *e, const struct trib_run *run, int peer,
                      struct trib_ref *ref)
{
    const struct trib_block *b = block_between(e, run, peer, e->rank);

    if (!ref->blob.len)
        return;
    ref->origin += (int64_t)(b->out * run->desc.element);
    ref->hi = b->n_out * run->desc.element;
}

bool trib_run_lift_view(const struct trib_engine *e, const struct trib_run *run,
                        int peer, struct trib_view *view)
{
    const struct trib_block *b = block_between(e, run, e->rank, peer);
    const size_t first = b->in * run->desc.element;

    if (!view->remote)
        return true;
    if (view->lo != 0 || view->hi != b->n_in * run->desc.element)
        return false;
    view->origin -= (int64_t)first;
    view->lo += first;
    view->hi += first;
    return true;
}

/* Report why a peer's buffer is unavailable: the peer died, it named memory that does
 * not exist, or this rank has an error. */
static void import_failed(struct trib_engine *e, int peer)
{
    trib_status_t st = e->err->status;
    char why[sizeof(e->err->text)];

    snprintf(why, sizeof(why), "%s", trib_error_text(e->err));
    if (st == TRIB_ERR_PEER_LOST)
        trib_engine_lost(e, peer, false, why);
    else if (st == TRIB_OK || st == TRIB_ERR_INVALID || st == TRIB_ERR_RANGE)
        trib_engine_protocol(e, peer, "a reference to a nonexistent buffer");
    else
        trib_engine_unable(e, peer, st, why);
}

/* Return the view of a buffer that is reached by writes. If it cannot be written, its
 * data goes through slots: a peer that fell back to another transport may not have
 * registered it there. A part past the end of the buffer is a protocol error. */
static struct trib_view written_to(struct trib_engine *e, struct trib_link *l,
                                   const struct trib_import *im,
                                   const struct trib_ref *ref)
{
    assert(!l->mapped);
    trib_engine_notice(e, l->peer); /* a failed peer takes its memory back soon */
    if (e->failed)
        return (struct trib_view){.base = NULL};
    if (!im && e->err->status == TRIB_ERR_PEER_LOST)
        import_failed(e, l->peer);
    if (!im)
        return (struct trib_view){.base = NULL};
    if (!trib_ref_fits(ref, im->len)) {
        trib_engine_protocol(e, l->peer, "a reference outside its buffer");
        return (struct trib_view){.base = NULL};
    }
    return (struct trib_view){
        .remote = im->remote, .origin = ref->origin, .lo = ref->lo, .hi = ref->hi};
}

/* Return the view of a buffer that is read by address; the kernel checks that the peer
 * has that memory. */
static struct trib_view read_from(struct trib_engine *e, const struct trib_link *l,
                                  const struct trib_ref *ref)
{
    const struct trib_view none = {.base = NULL};

    if (ref->lo > ref->hi || ref->hi > UINTPTR_MAX - (uint64_t)ref->origin) {
        trib_engine_protocol(e, l->peer, "a reference outside its buffer");
        return none;
    }
    if (!l->reads)
        return none;
    return (struct trib_view){
        .addressed = true, .origin = ref->origin, .lo = ref->lo, .hi = ref->hi};
}

struct trib_view trib_engine_view(struct trib_engine *e, struct trib_link *l,
                                  const struct trib_ref *ref)
{
    const struct trib_view none = {.base = NULL};

    if (ref->blob.len == 0)
        return none;
    if (trib_ref_is_addressed(ref))
        return read_from(e, l, ref);
    trib_error_clear(e->err);
    struct trib_import *im = trib_link_import(l, &ref->blob, e->err);
    if (!l->mapped)
        return written_to(e, l, im, ref);
    if (!im)
        import_failed(e, l->peer);
    if (!im || !im->base)
        return none;
    if (!trib_ref_fits(ref, im->len)) {
        trib_engine_protocol(e, l->peer, "a reference outside its buffer");
        return none;
    }
    return (struct trib_view){
        .base = im->base + ref->origin, .lo = ref->lo, .hi = ref->hi};
}

static void fail_withdrawn(struct trib_engine *e, int peer)
{
    char who[128], where[160], text[400];

    trib_engine_notice(e, peer); /* prefer the peer's own notice, if any */
    trib_engine_name_rank(e, peer, who, sizeof(who));
    trib_engine_describe(e, where, sizeof(where));
    snprintf(text, sizeof(text), "%s has abandoned %s; seen by rank %d", who, where,
             e->rank);
    trib_engine_mark(e, TRIB_ERR_PEER_LOST, text);
}

bool trib_engine_stood(struct trib_engine *e, int peer)
{
    if (!trib_link_is_withdrawn(&e->links[peer]))
        return true;
    fail_withdrawn(e, peer);
    return false;
}

bool trib_engine_read(struct trib_engine *e, int peer, uint64_t from, uint8_t *to,
                      size_t bytes)
{
    struct trib_transport *t = e->transport;

    assert(e->links[peer].reads);
    trib_error_clear(e->err);
    const trib_status_t st = t->ops->read(t, peer, from, to, bytes);
    if (trib_engine_stood(e, peer) && st != TRIB_OK && !e->failed)
        import_failed(e, peer);
    return !e->failed;
}

/* If ranks share a core, two copies within its cache cost less than a read by
 * address. */
bool trib_engine_expose(const struct trib_engine *e, const struct trib_link *l,
                        const void *ptr, size_t bytes, struct trib_ref *out)
{
    assert(bytes);
    if (!l->mapped)
        return false;
    trib_memory_ref(&e->memories, ptr, 0, bytes, true, out);
    if (!out->blob.len && l->reads && !e->oversubscribed)
        trib_ref_address(out, ptr, 0, bytes);
    return out->blob.len != 0;
}

/* Copy memory larger than a cache with streaming stores. */
static trib_status_t fetch_mapped(struct trib_engine *e, struct trib_link *l,
                                  const uint8_t *from, struct trib_piece to, bool large)
{
    if (large)
        e->kernels->copy_stream(to.ptr, from, to.bytes);
    else
        memcpy(to.ptr, from, to.bytes);
    return trib_engine_stood(e, l->peer) ? TRIB_OK : (trib_status_t)e->failed;
}

trib_status_t trib_engine_fetch(struct trib_engine *e, struct trib_link *l,
                                const struct trib_ref *ref, size_t at,
                                struct trib_piece to)
{
    assert(ref->lo == 0 && at + to.bytes <= ref->hi);
    e->stats.copied_bytes += to.bytes;
    if (!trib_ref_is_addressed(ref)) {
        const struct trib_view view = trib_engine_view(e, l, ref);
        if (e->failed)
            return (trib_status_t)e->failed;
        return view.base ? fetch_mapped(e, l, view.base + at, to, ref->hi >= STREAM_MIN)
                         : TRIB_ERR_UNSUPPORTED;
    }
    if (!l->reads)
        return TRIB_ERR_UNSUPPORTED;
    if (ref->hi > UINTPTR_MAX - (uint64_t)ref->origin) {
        trib_engine_protocol(e, l->peer, "a reference outside its buffer");
        return (trib_status_t)e->failed;
    }
    return trib_engine_read(e, l->peer, (uint64_t)ref->origin + at, to.ptr, to.bytes)
               ? TRIB_OK
               : (trib_status_t)e->failed;
}
