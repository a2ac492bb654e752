/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/payload_blocks.h"

#include <assert.h>

#include "base/error.h"
#include "pipeline/payload/chunk_memory.h"
#include "pipeline/payload/payload.h"
#include "pipeline/payload/payload_raw.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/payload/peer_reads.h"
#include "pipeline/run/engine_state.h"
#include "pipeline/run/failure.h"
#include "pipeline/run/run_buffers.h"

enum { REF_MIN = 16384 }; /* bytes of a chunk: copying less is no slower than a GET */

/* Return true if t moves this rank's contribution: at other ranks the block may have a
 * different length. */
static bool gives(const struct trib_task *t)
{
    return t->kind == TRIB_TASK_SEND && t->flags & TRIB_TASK_INPUT;
}

bool trib_blocks_expect(struct trib_run *run, const struct trib_frame *f,
                        uint32_t chunk)
{
    const struct trib_run_desc *d = &run->desc;
    struct trib_frame mine = run->now.frame;

    if (!d->blocks->local)
        return false;
    mine.count = d->blocks->at[chunk % d->n_chunks].n_out;
    if (trib_frame_same(&mine, f) && f->chunk == chunk)
        return true;
    run->now.frame.count = mine.count;
    return false;
}

static bool blocks_begin(struct trib_engine *e, struct trib_run *run)
{
    const struct trib_blocks *b = run->desc.blocks;
    const size_t size = run->desc.element;
    struct trib_ref *refs = run->payload->block_refs;

    trib_reads_begin(run);
    for (uint32_t i = 0; i < run->program.n_tasks; i++) {
        struct trib_task *t = &run->program.tasks[i];
        t->done = gives(t) ? b->at[t->chunk].late_in : b->at[t->chunk].late_out;
    }
    trib_ref_none(&refs[0]);
    trib_ref_none(&refs[1]);
    trib_run_open_blocks(e, run);
    if (run->desc.zero_copy && b->in_end)
        trib_run_open_buffer(e, run, run->now.input, b->in_end * size, &refs[0]);
    if (run->desc.zero_copy && b->out_end)
        trib_run_open_buffer(e, run, run->now.recv, b->out_end * size, &refs[1]);
    return !e->failed;
}

static struct trib_chunk blocks_chunk(const struct trib_run *run,
                                      const struct trib_task *t)
{
    return trib_block_chunk(run, t->done, t->chunk, gives(t));
}

/* Return the number of elements granted by a chunk's reference. If the receiver reads
 * by address, this includes the rest of the block, if it is ready. */
static size_t granted(const struct trib_run *run, const struct trib_task *t,
                      const struct trib_chunk *c, const struct trib_ref *ref)
{
    const struct trib_block *b = &run->desc.blocks->at[t->chunk];

    return gives(t) && trib_ref_is_addressed(ref) &&
                   run->desc.op.feed == TRIB_FEED_WHOLE
               ? b->in + b->n_in - c->first
               : c->n;
}

/* Write the reference by which the receiver reads the chunk; return true if it can. */
static bool find_ref(const struct trib_engine *e, const struct trib_run *run,
                     const struct trib_task *t, const struct trib_chunk *c,
                     struct trib_advert *out)
{
    const struct trib_block *b = &run->desc.blocks->at[t->chunk];
    const size_t size = run->desc.element;
    const struct trib_ref *ref = &run->payload->block_refs[!gives(t)];
    const uint8_t *base = gives(t) ? run->now.input : run->now.recv;
    const struct trib_link *l = &e->links[run->program.neighbors[t->neighbor].peer];

    if (!run->desc.zero_copy || c->n * size < REF_MIN || !ref->blob.len ||
        !(t->flags & (TRIB_TASK_FINAL | TRIB_TASK_STABLE)) || !l->mapped ||
        (trib_ref_is_addressed(ref) && !l->reads) ||
        (!gives(t) && b->out == TRIB_NO_PLACE))
        return false;
    const uint8_t *at = gives(t) ? trib_run_input(run, c) : trib_run_acc(run, c);
    trib_blob_copy(&out->send.blob, &ref->blob);
    out->send.origin = ref->origin + (at - base);
    out->send.lo = 0;
    out->send.hi = granted(run, t, c, ref) * size;
    trib_ref_none(&out->recv);
    return true;
}

static size_t blocks_room(const struct trib_engine *e, const struct trib_run *run,
                          const struct trib_task *t, const struct trib_chunk *c)
{
    struct trib_advert advert;

    if (find_ref(e, run, t, c, &advert))
        return trib_advert_bytes(&advert);
    return trib_payload_raw.room(e, run, t, c);
}

static void blocks_fill(struct trib_engine *e, struct trib_run *run,
                        struct trib_task *t, const struct trib_chunk *c,
                        struct trib_entry *entry)
{
    struct trib_neighbor *neighbor = &run->program.neighbors[t->neighbor];
    struct trib_link *l = &e->links[neighbor->peer];
    struct trib_advert advert;

    if (find_ref(e, run, t, c, &advert)) {
        const size_t bytes = trib_advert_bytes(&advert);
        entry->frame = run->now.frame;
        entry->frame.kind = TRIB_FRAME_GET;
        entry->frame.chunk = c->index;
        entry->frame.bytes = (uint32_t)bytes;
        trib_advert_write(&advert, trib_link_to_send(l, &e->arena, t->lane, bytes));
        neighbor->ref_end[t->lane] = l->send[t->lane].next + 1;
        trib_payload_count_out(e, t, c->n * run->desc.element,
                               c->n * run->desc.element);
        e->stats.wire_bytes += c->n * run->desc.element;
    } else {
        trib_payload_raw.fill(e, run, t, c, entry);
    }
    if (run->desc.blocks->local)
        entry->frame.count = run->desc.blocks->at[t->chunk].n_in;
}

/*
 * Convert a GET frame of a block to the form of the raw payload: a view of this chunk
 * alone in an advertised buffer. Return false if the frame names no memory of the
 * chunk's size.
 */
static bool open_ref(struct trib_engine *e, struct trib_run *run, uint16_t at, int lane,
                     struct trib_entry *entry, const struct trib_chunk *c)
{
    struct trib_neighbor *neighbor = &run->program.neighbors[at];
    struct trib_link *l = &e->links[neighbor->peer];
    const size_t bytes = entry->frame.bytes, want = c->n * run->desc.element;
    struct trib_advert advert;

    if (entry->frame.kind != TRIB_FRAME_GET)
        return true;
    if (bytes > TRIB_ADVERT_MAX ||
        !trib_advert_read(trib_link_received(l, &e->arena, lane, entry), bytes,
                          &advert))
        return false;
    const struct trib_view view = trib_engine_view(e, l, &advert.send);
    const size_t n = view.hi - view.lo;
    if (e->failed || (view.addressed ? n < want : !view.base || n != want))
        return false;
    const size_t first = c->first * run->desc.element;
    neighbor->peer_send = (struct trib_view){
        .base = view.base ? (uint8_t *)((uintptr_t)view.base + view.lo - first) : NULL,
        .addressed = view.addressed,
        .origin = view.origin + (int64_t)view.lo - (int64_t)first,
        .lo = first,
        .hi = first + n,
    };
    entry->frame.source = TRIB_SOURCE_SEND;
    entry->frame.bytes = 0;
    return true;
}

static trib_status_t blocks_reduce(struct trib_engine *e, struct trib_run *run,
                                   struct trib_task *t, const struct trib_chunk *c)
{
    const struct trib_contrib *m = &run->program.contribs[t->contrib];

    for (uint32_t i = 0; i < t->n_contribs; i++) {
        const int peer = run->program.neighbors[m[i].neighbor].peer;
        struct trib_entry *entry =
            trib_link_peek(&e->links[peer], &e->arena, m[i].lane);
        if (!open_ref(e, run, m[i].neighbor, m[i].lane, entry, c))
            return TRIB_ERR_PROTOCOL;
    }
    return trib_payload_raw.reduce(e, run, t, c);
}

static trib_status_t blocks_copy_in(struct trib_engine *e, struct trib_run *run,
                                    struct trib_task *t, const struct trib_chunk *c,
                                    struct trib_entry *entry)
{
    if (!open_ref(e, run, t->neighbor, t->lane, entry, c))
        return TRIB_ERR_PROTOCOL;
    return trib_payload_raw.copy_in(e, run, t, c, entry);
}

const struct trib_payload_ops trib_payload_blocks = {
    .name = "blocks",
    .begin = blocks_begin,
    .end = trib_raw_end,
    .chunk = blocks_chunk,
    .room = blocks_room,
    .ready = trib_raw_ready,
    .fill = blocks_fill,
    .zcopy_to_slot = trib_raw_zcopy_to_slot,
    .reduce = blocks_reduce,
    .copy_in = blocks_copy_in,
    .copy = trib_raw_copy_task,
};
