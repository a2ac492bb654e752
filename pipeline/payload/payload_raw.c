/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/payload_raw.h"

#include <assert.h>
#include <string.h>

#include "pipeline/payload/check.h"
#include "pipeline/payload/chunk_memory.h"
#include "pipeline/payload/contribution.h"
#include "pipeline/payload/narrow.h"
#include "pipeline/payload/payload.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/payload/peer_reads.h"
#include "pipeline/payload/raw_sum.h"
#include "pipeline/payload/chunk_parts.h"
#include "pipeline/payload/undo_log.h"
#include "pipeline/run/engine_state.h"
#include "pipeline/run/run_buffers.h"

enum {
    PLACED_ROUNDS = 64, /* bits of trib_task.placed */
    ZCOPY_MIN = 4096, /* bytes: copying less is cheaper than a separate write */
};

static uint64_t round_bit(uint32_t round)
{
    return (uint64_t)1 << round % PLACED_ROUNDS;
}

/* Return the chunk's address in a peer's advertised buffer; NULL if out of reach. */
static uint8_t *peer_at(const struct trib_run *run, const struct trib_view *view,
                        const struct trib_chunk *c)
{
    size_t lo = c->first * run->desc.element;

    if (!view->base || lo < view->lo || lo + c->n * run->desc.element > view->hi)
        return NULL;
    return view->base + lo;
}

/* Return the address in this peer's receive buffer for a result. Aggregators advertise
 * their own results instead: see way_of. */
static uint8_t *stored_at(const struct trib_engine *e, const struct trib_run *run,
                          const struct trib_neighbor *neighbor,
                          const struct trib_chunk *c)
{
    return neighbor->peer < e->ranks ? peer_at(run, &neighbor->peer_recv, c) : NULL;
}

/* Return true if the transport can write this chunk into the peer's buffer. */
static bool takes_writes(const struct trib_run *run, const struct trib_view *view,
                         const struct trib_chunk *c)
{
    size_t lo = c->first * run->desc.element, bytes = c->n * run->desc.element;

    return view->remote && bytes >= ZCOPY_MIN && lo >= view->lo &&
           lo + bytes <= view->hi;
}

/* Return the elements that a received frame stands for; NULL if the frame is invalid,
 * or if they are read by address. */
static const uint8_t *source_of(const struct trib_engine *e, const struct trib_run *run,
                                const struct trib_neighbor *neighbor, int lane,
                                struct trib_entry *entry, const struct trib_chunk *c)
{
    size_t bytes = c->n * run->desc.element;

    if (entry->frame.bytes != (entry->frame.kind == TRIB_FRAME_DATA ? bytes : 0))
        return NULL;
    if (entry->frame.kind == TRIB_FRAME_DATA)
        return trib_link_received(&e->links[neighbor->peer], &e->arena, lane, entry);
    if (entry->frame.kind != TRIB_FRAME_GET)
        return NULL;
    bool recv = trib_frame_source(&entry->frame) == TRIB_SOURCE_RECV;
    if (recv && neighbor->peer >= e->ranks)
        return trib_peer_result(run, &neighbor->peer_recv, c);
    return peer_at(run, recv ? &neighbor->peer_recv : &neighbor->peer_send, c);
}

/* Return the elements of a SEND of this chunk. */
static const uint8_t *sent_by(const struct trib_run *run, const struct trib_task *t,
                              const struct trib_chunk *c)
{
    return t->flags & TRIB_TASK_INPUT ? trib_run_input(run, c) : trib_run_acc(run, c);
}

/* Return true if the elements of a SEND stay unchanged until the receiver has read
 * them. The first step of an exclusive scan forwards an input that the result may
 * overwrite. */
static bool stays(const struct trib_run *run, const struct trib_task *t)
{
    if (t->flags & TRIB_TASK_STABLE ||
        (t->flags & TRIB_TASK_INPUT && run->now.input_stays))
        return true;
    return t->flags & TRIB_TASK_FINAL && run->desc.op.coll != TRIB_EXSCAN;
}

/* How the elements travel, the cheapest first. */
enum way {
    THERE_ALREADY, /* stored by the k-ary sum */
    READ_IN_PLACE, /* by the receiver */
    STORED_IN_PLACE,
    WRITTEN_IN_PLACE, /* by the transport */
    THROUGH_SLOT,
};

static inline enum way way_of(const struct trib_engine *e, const struct trib_run *run,
                       const struct trib_task *t, const struct trib_chunk *c)
{
    const struct trib_neighbor *neighbor = &run->program.neighbors[t->neighbor];
    const struct trib_link *l = &e->links[neighbor->peer];
    bool is_input = t->flags & TRIB_TASK_INPUT, final = t->flags & TRIB_TASK_FINAL;
    const struct trib_ref *ref =
        is_input ? &run->now.advert.send : &run->now.advert.recv;
    bool in_scratch = run->payload->scratch_acc && !run->payload->acc_is_read &&
                      !is_input && trib_run_acc(run, c) >= run->payload->scratch_acc;

    if (t->placed & round_bit(t->done))
        return THERE_ALREADY;
    if (!l->mapped)
        return final && takes_writes(run, &neighbor->peer_recv, c) ? WRITTEN_IN_PLACE
                                                                   : THROUGH_SLOT;
    const bool named =
        run->desc.zero_copy && c->n && !in_scratch && ref->blob.len && stays(run, t);
    if (named && !trib_ref_is_addressed(ref))
        return READ_IN_PLACE;
    if (c->n && final && stored_at(e, run, neighbor, c))
        return STORED_IN_PLACE;
    return named && l->reads ? READ_IN_PLACE : THROUGH_SLOT;
}

static size_t raw_room(const struct trib_engine *e, const struct trib_run *run,
                       const struct trib_task *t, const struct trib_chunk *c)
{
    const size_t bytes = c->n * run->desc.element;

    if (bytes <= e->links[run->program.neighbors[t->neighbor].peer].small)
        return bytes;
    return way_of(e, run, t, c) == THROUGH_SLOT ? c->n * run->desc.element : 0;
}

/* Find registered memory to write the elements from to a peer without load/store reach.
 * It must stay unchanged until they have arrived; false: copy them. */
static bool carries(struct trib_engine *e, const struct trib_run *run,
                    const struct trib_task *t, const struct trib_chunk *c,
                    struct trib_zcopy *out)
{
    bool is_input = t->flags & TRIB_TASK_INPUT;
    bool stable = t->flags & (TRIB_TASK_FINAL | TRIB_TASK_STABLE);
    const struct trib_place *place =
        is_input ? &run->now.input_place : &run->now.recv_place;
    bool in_scratch = run->payload->scratch_acc && !is_input &&
                      trib_run_acc(run, c) >= run->payload->scratch_acc;
    size_t bytes = c->n * run->desc.element;

    if (e->links[run->program.neighbors[t->neighbor].peer].mapped ||
        !run->desc.zero_copy || bytes < ZCOPY_MIN || !stable || in_scratch ||
        !place->region)
        return false;
    out->from = place->region;
    out->from_off = (size_t)(place->origin + (int64_t)(c->first * run->desc.element));
    return true;
}

static void copy_to_staging(struct trib_engine *e, struct trib_run *run,
                            const struct trib_task *t, const struct trib_chunk *c)
{
    struct trib_link *l = &e->links[run->program.neighbors[t->neighbor].peer];
    size_t bytes = c->n * run->desc.element;

    assert(bytes <= e->arena.slot_bytes);
    trib_parts_copy(e, trib_link_to_send(l, &e->arena, t->lane, bytes),
                    sent_by(run, t, c), bytes);
    e->stats.copied_bytes += bytes;
}

void trib_raw_zcopy_to_slot(struct trib_engine *e, struct trib_run *run,
                              struct trib_task *t, const struct trib_chunk *c)
{
    struct trib_zcopy *zcopy =
        &e->links[run->program.neighbors[t->neighbor].peer].zcopy[t->lane];

    if (run->now.input_place.region == zcopy->from)
        run->now.input_place.region = NULL;
    if (run->now.recv_place.region == zcopy->from)
        run->now.recv_place.region = NULL;
    assert(zcopy->from && zcopy->len);
    copy_to_staging(e, run, t, c);
    zcopy->from = NULL;
    if (!zcopy->to) /* the payload goes through the slot, with its entry */
        zcopy->len = 0;
}

/* Prepare a payload that a transport writes, to a slot or to its final place. */
static void fill_zcopy(struct trib_engine *e, struct trib_run *run, struct trib_task *t,
                       const struct trib_chunk *c, enum way way)
{
    const struct trib_neighbor *neighbor = &run->program.neighbors[t->neighbor];
    struct trib_link *l = &e->links[neighbor->peer];
    size_t lo = c->first * run->desc.element, bytes = c->n * run->desc.element;
    struct trib_zcopy zcopy = {.len = bytes};

    if (!carries(e, run, t, c, &zcopy)) {
        copy_to_staging(e, run, t, c);
        if (way == THROUGH_SLOT)
            return;
    }
    if (way == WRITTEN_IN_PLACE) {
        assert(neighbor->peer_recv.remote && lo + bytes <= neighbor->peer_recv.hi);
        zcopy.to = neighbor->peer_recv.remote;
        zcopy.to_off = (size_t)(neighbor->peer_recv.origin + (int64_t)lo);
    }
    l->zcopy[t->lane] = zcopy;
}

/* Count the elements of a frame that names memory: they moved through memory, not over
 * the wire. */
static void count_named(uint64_t *bytes, const struct trib_run *run,
                        const struct trib_frame *f, const struct trib_chunk *c)
{
    if (f->kind != TRIB_FRAME_DATA)
        *bytes += c->n * run->desc.element;
}

static void raw_fill(struct trib_engine *e, struct trib_run *run, struct trib_task *t,
                     const struct trib_chunk *c, struct trib_entry *entry)
{
    struct trib_neighbor *neighbor = &run->program.neighbors[t->neighbor];
    size_t bytes = c->n * run->desc.element;
    const uint8_t *src = sent_by(run, t, c);

    entry->frame = run->now.frame;
    entry->frame.chunk = c->index;
    if (run->payload->narrow)
        trib_frame_set_divided(&entry->frame, trib_narrow_before(run, t));
    trib_payload_count_out(e, t, bytes, bytes);
    enum way way = way_of(e, run, t, c);
    if (way == THROUGH_SLOT) {
        entry->frame.kind = TRIB_FRAME_DATA;
        entry->frame.bytes = (uint32_t)bytes;
        if (bytes && t->in_slot != t->done + 1)
            fill_zcopy(e, run, t, c, way);
    } else if (way == READ_IN_PLACE) {
        entry->frame.kind = TRIB_FRAME_GET;
        entry->frame.source |=
            t->flags & TRIB_TASK_INPUT ? TRIB_SOURCE_SEND : TRIB_SOURCE_RECV;
        neighbor->ref_end[t->lane] = e->links[neighbor->peer].send[t->lane].next + 1;
    } else {
        entry->frame.kind = TRIB_FRAME_PUT_DONE;
        if (way == WRITTEN_IN_PLACE)
            fill_zcopy(e, run, t, c, way);
        if (way == STORED_IN_PLACE) {
            trib_parts_copy_stream(e, stored_at(e, run, neighbor, c), src, bytes);
            e->stats.copied_bytes += bytes;
        }
        t->placed &= ~round_bit(t->done);
    }
    count_named(&e->stats.wire_bytes, run, &entry->frame, c);
}

/* Return the payload address of the slot for a SEND of this round; NULL if it is not
 * the next slot, or if the receiver reads the receive buffer. */
static uint8_t *next_slot(struct trib_engine *e, struct trib_run *run,
                          const struct trib_task *send, uint32_t round, size_t bytes)
{
    const struct trib_neighbor *neighbor = &run->program.neighbors[send->neighbor];
    struct trib_link *l = &e->links[neighbor->peer];

    const struct trib_ref *recv = &run->now.advert.recv;
    bool read = recv->blob.len && (l->reads || !trib_ref_is_addressed(recv)) &&
                (!run->is_aggregator || send->flags & TRIB_TASK_FINAL);

    if (!l->mapped || bytes <= TRIB_ENTRY_PAYLOAD || read ||
        l->send[send->lane].next != trib_send_seq(&run->program, send, round) ||
        !trib_link_can_send(l, send->lane, bytes))
        return NULL;
    return trib_link_to_send(l, &e->arena, send->lane, bytes);
}

/* Let the sum store its result at its destinations: the receive buffers of peers within
 * reach, else the slots that are sent next. */
static void add_places(struct trib_engine *e, struct trib_run *run,
                       const struct trib_task *t, const struct trib_chunk *c,
                       struct trib_reduce_args *r)
{
    struct trib_program *p = &run->program;
    uint32_t me = (uint32_t)(t - p->tasks);

    for (uint32_t i = p->next[me];
         i != TRIB_STEP_NO_DEP && r->n_dst < TRIB_REDUCE_MAX_DST; i = p->next[i]) {
        struct trib_task *f = &p->tasks[i];
        if (f->kind != TRIB_TASK_SEND || f->dep != me ||
            t->done - f->done >= PLACED_ROUNDS)
            continue;
        uint8_t *place = f->flags & TRIB_TASK_FINAL && !run->payload->acc_is_read
                             ? stored_at(e, run, &p->neighbors[f->neighbor], c)
                             : NULL;
        if (place)
            f->placed |= round_bit(t->done);
        else if (f->done == t->done &&
                 (place = next_slot(e, run, f, t->done, c->n * run->desc.element)))
            f->in_slot = t->done + 1;
        else
            continue;
        r->dst[r->n_dst++] = place;
    }
}

/*
 * Return true if results bypass the cache. In place, the lines were just read, and
 * bypassing costs twice as much. Peers have read an aggregator's previous result, so
 * fetching those lines back would cost more than both.
 */
static bool goes_around_cache(const struct trib_run *run, const struct trib_task *t)
{
    if (run->is_aggregator)
        return run->payload->acc_is_read && t->flags & TRIB_TASK_FINISH;
    return run->desc.stream && run->now.input != run->now.recv;
}

/* The contributions of a sum. */
struct gathered {
    int n;
    struct trib_narrow sum;
};

/* Return the elements of a peer's contribution. */
static const uint8_t *contribution_of(struct trib_engine *e, struct trib_run *run,
                                      const struct trib_task *t,
                                      const struct trib_contrib_item *from,
                                      const struct trib_chunk *c)
{
    struct trib_peer_chunk named;

    if (c->n && trib_reads_named(from->neighbor, &from->entry->frame, &named))
        return trib_reads_contrib(
            e, run, t, from->contrib - &run->program.contribs[t->contrib], c, &named);
    return source_of(e, run, from->neighbor, from->contrib->lane, from->entry, c);
}

/* Collect the elements of all contributions, and their weights if the sum is narrow. */
static trib_status_t find_sources(struct trib_engine *e, struct trib_run *run,
                                  const struct trib_task *t, const struct trib_chunk *c,
                                  struct gathered *out)
{
    struct trib_contrib_walk walk = trib_contrib_begin(e, run, t);
    struct trib_contrib_item from;
    uint8_t divided;

    for (out->n = 0; trib_contrib_next(&walk, &from); out->n++) {
        const uint8_t **src = &run->payload->sources[out->n];
        if (from.by == TRIB_BY_PEER) {
            divided = trib_frame_divided(&from.entry->frame);
            *src = contribution_of(e, run, t, &from, c);
            if (!*src)
                return TRIB_ERR_PROTOCOL;
            if (trib_check_peer(e, run, c, from.neighbor->peer, *src) != TRIB_OK)
                return TRIB_ERR_INVALID;
            count_named(&e->stats.received_bytes, run, &from.entry->frame, c);
        } else if (from.by == TRIB_BY_INPUT) {
            divided = 0;
            *src = trib_run_input(run, c);
        } else {
            divided = trib_narrow_before(run, t);
            *src = trib_run_acc(run, c);
        }
        if (run->payload->narrow)
            run->payload->weights[out->n] = trib_narrow_weight(&out->sum, divided);
    }
    return TRIB_OK;
}

/* Return true if no peer withdrew its memory while this rank read it. */
static bool sources_stood(struct trib_engine *e, struct trib_run *run,
                          const struct trib_task *t)
{
    struct trib_contrib_walk walk = trib_contrib_begin(e, run, t);
    struct trib_contrib_item from;

    while (trib_contrib_next(&walk, &from))
        if (from.by == TRIB_BY_PEER && from.entry->frame.kind == TRIB_FRAME_GET &&
            !trib_engine_stood(e, from.neighbor->peer))
            return false;
    return true;
}

static trib_status_t raw_reduce(struct trib_engine *e, struct trib_run *run,
                                struct trib_task *t, const struct trib_chunk *c)
{
    struct gathered all = {.sum.one = 1.0f};

    if (run->payload->narrow)
        all.sum = trib_narrow_begin(e, run, t);
    trib_status_t st = find_sources(e, run, t, c, &all);
    if (st != TRIB_OK)
        return st;
    assert(all.n > 0 && all.n <= t->n_contribs + 1);
    struct trib_reduce_args r = {
        .n = c->n,
        .dst[0] = trib_run_acc(run, c),
        .n_dst = 1,
        .ranks = t->flags & TRIB_TASK_MEAN && !run->payload->narrow ? e->ranks : 0,
        .weight = run->payload->weights,
        .divisor = all.sum.divisor,
        .stream = goes_around_cache(run, t),
    };
    trib_undo_save_input(run, c);
    if (c->n) {
        add_places(e, run, t, c, &r);
        trib_raw_sum(e, run, run->payload->sources, all.n, &r);
    }
    trib_payload_count_in(e, run, c, t->n_contribs);
    e->stats.sums++;
    return !run->desc.zero_copy || sources_stood(e, run, t) ? TRIB_OK
                                                            : TRIB_ERR_PEER_LOST;
}

static trib_status_t raw_copy_in(struct trib_engine *e, struct trib_run *run,
                                 struct trib_task *t, const struct trib_chunk *c,
                                 struct trib_entry *entry)
{
    count_named(&e->stats.received_bytes, run, &entry->frame, c);
    trib_payload_count_in(e, run, c, 1);
    if (entry->frame.kind == TRIB_FRAME_PUT_DONE)
        return run->desc.zero_copy ? TRIB_OK : TRIB_ERR_PROTOCOL;
    const struct trib_neighbor *neighbor = &run->program.neighbors[t->neighbor];
    struct trib_peer_chunk named;
    if (c->n && trib_reads_named(neighbor, &entry->frame, &named))
        return trib_reads_copy_in(e, run, t, c, &named) ? TRIB_OK : TRIB_ERR_PROTOCOL;
    const uint8_t *src = source_of(e, run, neighbor, t->lane, entry, c);
    if (!src)
        return TRIB_ERR_PROTOCOL;
    trib_undo_save_input(run, c);
    if (c->n)
        trib_parts_copy(e, trib_run_acc(run, c), src, c->n * run->desc.element);
    e->stats.copied_bytes += c->n * run->desc.element;
    return entry->frame.kind == TRIB_FRAME_DATA || trib_engine_stood(e, neighbor->peer)
               ? TRIB_OK
               : TRIB_ERR_PEER_LOST;
}

void trib_raw_copy(struct trib_engine *e, struct trib_run *run,
                   const struct trib_chunk *c)
{
    const uint8_t *src = trib_run_input(run, c);

    if (run->no_result || c->n == 0)
        return;
    uint8_t *dst = trib_run_acc(run, c);
    if (run->payload->reduces_one) {
        trib_raw_sum(e, run, &src, 1,
                     &(struct trib_reduce_args){.n = c->n, .dst = {dst}, .n_dst = 1});
        return;
    }
    if (dst == src)
        return;
    trib_parts_copy(e, dst, src, c->n * run->desc.element);
    e->stats.copied_bytes += c->n * run->desc.element;
}

trib_status_t trib_raw_copy_task(struct trib_engine *e, struct trib_run *run,
                              struct trib_task *t, const struct trib_chunk *c)
{
    (void)t;
    trib_raw_copy(e, run, c);
    return TRIB_OK;
}

static bool raw_begin(struct trib_engine *e, struct trib_run *run)
{
    trib_reads_begin(run);
    return !e->failed;
}

void trib_raw_end(struct trib_engine *e, struct trib_run *run)
{
    (void)e;
    (void)run;
}

bool trib_raw_ready(struct trib_engine *e, struct trib_run *run,
                      const struct trib_task *t, const struct trib_chunk *c)
{
    if (t->kind == TRIB_TASK_COPY_IN)
        return trib_acc_free(e, run, t);
    return trib_run_fed(run, t, c) &&
           (t->kind != TRIB_TASK_REDUCE || trib_acc_free(e, run, t));
}

static struct trib_bytes raw_sent(const struct trib_engine *e,
                                  const struct trib_run *run, const struct trib_task *t,
                                  const struct trib_chunk *c)
{
    (void)e;
    return (struct trib_bytes){sent_by(run, t, c), c->n * run->desc.element};
}

static struct trib_bytes raw_received(struct trib_engine *e, const struct trib_run *run,
                                      const struct trib_task *t,
                                      const struct trib_contrib *from,
                                      const struct trib_chunk *c)
{
    const struct trib_neighbor *neighbor = &run->program.neighbors[from->neighbor];
    struct trib_entry *entry =
        trib_link_peek(&e->links[neighbor->peer], &e->arena, from->lane);
    const size_t bytes = c->n * run->desc.element;

    if (entry->frame.kind == TRIB_FRAME_PUT_DONE && t->kind == TRIB_TASK_COPY_IN &&
        run->desc.zero_copy)
        return (struct trib_bytes){trib_run_acc(run, c), bytes};
    return (struct trib_bytes){source_of(e, run, neighbor, from->lane, entry, c),
                               bytes};
}

const struct trib_payload_ops trib_payload_raw = {
    .name = "raw",
    .begin = raw_begin,
    .end = trib_raw_end,
    .chunk = trib_task_chunk,
    .room = raw_room,
    .ready = trib_raw_ready,
    .fill = raw_fill,
    .zcopy_to_slot = trib_raw_zcopy_to_slot,
    .reduce = raw_reduce,
    .copy_in = raw_copy_in,
    .copy = trib_raw_copy_task,
    .sent = raw_sent,
    .received = raw_received,
};
