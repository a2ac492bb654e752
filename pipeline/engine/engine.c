/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why this cannot deadlock. schedule.h requires one order of all steps of all ranks.
 * Repeat that order for every round, and take its first unfinished step. Its dep
 * precedes it and is done. If the step receives, its SEND precedes it, so the frame has
 * arrived, and all earlier frames of its lane were consumed. If the step sends, the
 * RECV of the previous frame on its lane also precedes it. All W >= 1 slots are then
 * free, and their credits are in flight. A k-ary task waits for several RECVs: they are
 * adjacent in the list, and none of their SENDs depends on one of them. So the first
 * unfinished step can always run.
 *
 * If results of an aggregator are read in place, it produces one after that of W rounds
 * earlier was read: its RECV_COPYs precede it, and the credit of a GET returns at once.
 * A user that feeds a vector piecewise only delays inputs, which depend on nothing; all
 * ranks process chunks in the same order of rounds.
 */
#include "pipeline/engine/engine.h"

#include <assert.h>
#include <stdio.h>

#include "pipeline/engine/short_path.h"
#include "pipeline/link/grants.h"
#include "pipeline/payload/checksum.h"
#include "pipeline/payload/encode_ahead.h"
#include "pipeline/payload/partial.h"
#include "pipeline/payload/payload.h"
#include "pipeline/run/engine_page.h"
#include "pipeline/run/events.h"
#include "pipeline/run/failure.h"

static void refill_feed(struct trib_run *run)
{
    for (uint32_t r = 0; run->now.unfed && r < trib_run_rounds(run); r++) {
        for (uint32_t k = 0; k < run->desc.n_chunks; k++) {
            struct trib_chunk c = trib_vector_chunk(run, r, k);
            atomic_store_explicit(&run->now.unfed[c.index], (uint32_t)c.n,
                                  memory_order_relaxed);
        }
    }
}

/* Begin a small operation. Its frames are sent before the first poll of the
 * transport. */
static void activate_short(struct trib_engine *e, struct trib_run *run)
{
    run->now.frame.seq = ++e->seq;
    run->now.moved = 0;
    trib_short_begin(e, run);
    atomic_store_explicit(&run->now.state, TRIB_RUN_ACTIVE, memory_order_relaxed);
    trib_engine_record_begin(e, run);
    (void)trib_short_pass(e, run);
}

static void activate(struct trib_engine *e, struct trib_run *run)
{
    struct trib_program *p = &run->program;

    if (run->short_path) {
        activate_short(e, run);
        return;
    }
    assert(e->head == run && run->now.state == TRIB_RUN_QUEUED);
    trib_grants_set(&e->arena, run->desc.senders);
    run->now.frame.seq = ++e->seq;
    run->now.remaining = p->n_tasks;
    run->now.moved = 0;
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        struct trib_task *t = &p->tasks[i];
        t->done = trib_task_first(run, t);
        t->in_slot = 0, t->placed = 0;
    }
    if (!run->payload_ops[0]->begin(e, run))
        return;
    for (uint32_t i = 0; i < p->n_neighbors; i++) {
        struct trib_neighbor *neighbor = &p->neighbors[i];
        struct trib_link *l = &e->links[neighbor->peer];
        neighbor->advert_out = neighbor->advert_in =
            run->desc.zero_copy && (l->mapped ? !run->desc.blocks : run->desc.place);
        neighbor->peer_send = neighbor->peer_recv = (struct trib_view){.base = NULL};
        for (int lane = 0; lane < TRIB_LANES; lane++) {
            uint32_t advert = lane == TRIB_LANE_UP && neighbor->advert_out;
            uint32_t out = lane == TRIB_LANE_DOWN ? l->out_frames : 0;
            neighbor->send_base[lane] = l->send[lane].next + advert + out;
            neighbor->recv_base[lane] =
                l->recv[lane].next + advert + l->recv[lane].skip;
            neighbor->ref_end[lane] = l->send[lane].released;
        }
    }
    if (run->desc.zero_copy && !run->desc.blocks)
        trib_run_open(e, run);
    atomic_store_explicit(&run->now.state, TRIB_RUN_ACTIVE, memory_order_relaxed);
    trib_engine_record_begin(e, run);
}

static void finish(struct trib_engine *e, trib_status_t status)
{
    struct trib_run *run = e->head;

    assert(status != TRIB_OK || run->now.remaining == 0);
    run->payload_ops[0]->end(e, run);
    trib_run_give_back(e, run, status != TRIB_OK && !trib_engine_await_quiet(e, run));
    e->head = run->now.next;
    if (!e->head)
        e->tail = NULL;
    run->now.status = status;
    e->stats.operations += status == TRIB_OK;
    trib_engine_record_end(e, run);
    atomic_store_explicit(&run->now.state, TRIB_RUN_DONE, memory_order_release);
    if (e->head && !e->failed)
        activate(e, e->head);
}

void trib_run_start(struct trib_engine *e, struct trib_run *run, const void *send,
                    void *recv)
{
    assert(run->now.state != TRIB_RUN_QUEUED && run->now.state != TRIB_RUN_ACTIVE);
    trib_run_bind(e, run, send, recv);
    run->now.next = NULL;
    run->now.step++;
    if (run->now.unfed)
        refill_feed(run);
    atomic_store_explicit(&run->now.state, TRIB_RUN_QUEUED, memory_order_relaxed);
    if (e->tail)
        e->tail->now.next = run;
    else
        e->head = run;
    e->tail = run;
    if (e->failed)
        (void)trib_engine_end(e);
    else if (e->head == run)
        activate(e, run);
}

bool trib_engine_end(struct trib_engine *e)
{
    const bool any = trib_engine_withdraw(e);

    while (e->failed && e->head)
        finish(e, e->failed);
    if (e->failed && e->p2p)
        e->p2p->ops->end(e);
    if (e->rest_unnotified) {
        e->rest_unnotified = false;
        trib_engine_notify_failure(e);
    }
    return any;
}

void trib_engine_end_leaving(struct trib_engine *e)
{
    assert(e->head && e->head->desc.op.leaving && !e->failed);
    e->head->now.remaining = 0;
    finish(e, TRIB_OK);
}

void trib_engine_fail(struct trib_engine *e, trib_status_t status, const char *text)
{
    trib_engine_mark(e, status, text);
    (void)trib_engine_end(e);
}

static bool frame_is_wrong(struct trib_engine *e, struct trib_run *run, int peer,
                           const struct trib_entry *entry, uint32_t chunk)
{
    if ((trib_frame_same(&run->now.frame, &entry->frame) &&
         entry->frame.chunk == chunk) ||
        (run->desc.blocks && trib_blocks_expect(run, &entry->frame, chunk)))
        return false;
    trib_engine_misfit(e, &entry->frame, peer);
    return true;
}

static void count_sent(struct trib_engine *e, struct trib_run *run,
                       const struct trib_frame *f)
{
    run->now.moved++;
    e->stats.messages++;
    e->stats.wire_bytes += sizeof(*f) + f->bytes;
}

static void count_received(struct trib_engine *e, struct trib_run *run,
                           const struct trib_frame *f)
{
    run->now.moved++;
    e->stats.received_bytes += sizeof(*f) + f->bytes;
}

static bool send_advert(struct trib_engine *e, struct trib_run *run,
                        struct trib_neighbor *neighbor)
{
    struct trib_link *l = &e->links[neighbor->peer];
    struct trib_advert block = run->now.advert_far;
    const struct trib_advert *advert = l->mapped ? &run->now.advert : &block;

    assert(neighbor->advert_out && run->desc.zero_copy);
    if (run->desc.blocks)
        trib_run_cut_ref(e, run, neighbor->peer, &block.recv);
    size_t bytes = trib_advert_bytes(advert);
    if (!trib_link_can_send(l, TRIB_LANE_UP, bytes))
        return false;
    struct trib_entry *entry = trib_link_entry(l, &e->arena, TRIB_LANE_UP);
    entry->frame = run->now.frame;
    entry->frame.kind = TRIB_FRAME_ADVERT;
    entry->frame.bytes = (uint32_t)bytes;
    trib_advert_write(advert, trib_link_to_send(l, &e->arena, TRIB_LANE_UP, bytes));
    if (run->desc.check.sum)
        trib_checksum_set_slot(e, l, TRIB_LANE_UP);
    if (trib_link_publish(l, &e->arena, TRIB_LANE_UP) != TRIB_OK)
        return false;
    count_sent(e, run, &entry->frame);
    neighbor->advert_out = false;
    return true;
}

static bool take_advert(struct trib_engine *e, struct trib_run *run,
                        struct trib_neighbor *neighbor)
{
    struct trib_link *l = &e->links[neighbor->peer];
    struct trib_entry *entry = trib_link_peek(l, &e->arena, TRIB_LANE_UP);

    if (!entry || l->recv[TRIB_LANE_UP].skip ||
        frame_is_wrong(e, run, neighbor->peer, entry, 0) ||
        (run->desc.check.sum && trib_checksum_wrong_slot(e, l, TRIB_LANE_UP)))
        return false;
    size_t bytes = entry->frame.bytes;
    struct trib_advert advert;
    if (entry->frame.kind != TRIB_FRAME_ADVERT || bytes > TRIB_ADVERT_MAX ||
        !trib_advert_read(trib_link_received(l, &e->arena, TRIB_LANE_UP, entry), bytes,
                          &advert)) {
        trib_engine_protocol(e, neighbor->peer, "a frame before its ADVERT frame");
        return false;
    }
    struct trib_view send = trib_engine_view(e, l, &advert.send), recv = {.base = NULL};
    if (!e->failed)
        recv = trib_engine_view(e, l, &advert.recv);
    if (!e->failed && run->desc.blocks &&
        !trib_run_lift_view(e, run, neighbor->peer, &recv))
        trib_engine_protocol(e, neighbor->peer, "a block of another length");
    if (e->failed)
        return false;
    assert(neighbor->advert_in);
    neighbor->peer_send = send;
    neighbor->peer_recv = recv;
    count_received(e, run, &entry->frame);
    trib_link_release(l, &e->arena, TRIB_LANE_UP);
    neighbor->advert_in = false;
    return true;
}

/* Handle a write that the transport cannot do, for example for lack of locked memory.
 * This rank's buffer uses slots from now on; an unreachable buffer of a peer is an
 * error. */
static void zcopy_failed(struct trib_engine *e, struct trib_run *run,
                         struct trib_task *t, const struct trib_chunk *c,
                         trib_status_t st)
{
    int peer = run->program.neighbors[t->neighbor].peer;
    const struct trib_zcopy *zcopy = &e->links[peer].zcopy[t->lane];
    char why[sizeof(e->err->text)];

    if (st == TRIB_ERR_NO_RESOURCE || st == TRIB_ERR_PEER_LOST || !zcopy->len)
        return;
    if (zcopy->from) {
        assert(trib_payload_of(run, t)->zcopy_to_slot);
        trib_memory_copy(&e->memories, zcopy->from);
        trib_error_clear(e->err);
        trib_payload_of(run, t)->zcopy_to_slot(e, run, t, c);
        return;
    }
    snprintf(why, sizeof(why), "%s", trib_error_text(e->err));
    trib_engine_unable(e, peer, st, why);
}

static bool run_send(struct trib_engine *e, struct trib_run *run, struct trib_task *t)
{
    struct trib_neighbor *neighbor = &run->program.neighbors[t->neighbor];
    struct trib_link *l = &e->links[neighbor->peer];
    bool waits = neighbor->advert_out ||
                 (neighbor->advert_in && (t->flags & TRIB_TASK_FINAL)) ||
                 (!run->desc.codec && trib_link_raw_full(l, &e->arena, t->lane));

    if (waits || l->send[t->lane].next != trib_send_seq(&run->program, t, t->done))
        return false;
    const struct trib_payload_ops *ops = trib_payload_of(run, t);
    struct trib_chunk c = ops->chunk(run, t);
    if (!trib_link_can_send(l, t->lane, ops->room(e, run, t, &c)) ||
        !ops->ready(e, run, t, &c))
        return false;
    struct trib_entry *entry = trib_link_entry(l, &e->arena, t->lane);
    if (!l->send[t->lane].filled) {
        ops->fill(e, run, t, &c, entry);
        if (e->failed)
            return false;
        if (run->desc.check.sum)
            trib_checksum_set(e, run, t, &c);
    }
    struct trib_frame f = entry->frame;
    const uint64_t begin_ns = trib_trace_clock(&e->trace);
    trib_status_t st = trib_link_publish(l, &e->arena, t->lane);
    if (st != TRIB_OK) {
        zcopy_failed(e, run, t, &c, st);
        return false;
    }
    trib_engine_trace_sent(e, begin_ns, neighbor->peer, &f);
    count_sent(e, run, &f);
    return true;
}

/* Return true if all contributions have arrived; with a quorum, those without which the
 * chunk is not closed. */
static bool members_due(struct trib_engine *e, struct trib_run *run,
                        const struct trib_task *t)
{
    if (run->desc.quorum.need)
        return trib_quorum_due(e, run, t);
    for (uint32_t i = 0; i < t->n_contribs; i++)
        if (!trib_run_due(e, run, &run->program.contribs[t->contrib + i], t->done))
            return false;
    return true;
}

static void release_member(struct trib_engine *e, struct trib_run *run,
                           const struct trib_contrib *m)
{
    const int peer = run->program.neighbors[m->neighbor].peer;
    struct trib_link *l = &e->links[peer];

    if (!trib_quorum_counts(run, peer)) {
        trib_quorum_skip(e, l, m->lane);
        return;
    }
    count_received(e, run, &trib_link_peek(l, &e->arena, m->lane)->frame);
    trib_link_release(l, &e->arena, m->lane);
}

/* Return true, and mark the engine, if a frame is of another operation or damaged. */
static bool members_wrong(struct trib_engine *e, struct trib_run *run,
                          const struct trib_task *t, const struct trib_chunk *c)
{
    const struct trib_program *p = &run->program;
    const struct trib_contrib *m = &p->contribs[t->contrib];

    for (uint32_t i = 0; i < t->n_contribs; i++) {
        int peer = p->neighbors[m[i].neighbor].peer;
        struct trib_entry *entry =
            trib_link_peek(&e->links[peer], &e->arena, m[i].lane);
        if (!trib_quorum_counts(run, peer))
            continue;
        if (frame_is_wrong(e, run, peer, entry, c->index) ||
            (run->desc.check.sum && trib_checksum_wrong(e, run, t, &m[i], c)))
            return true;
    }
    return false;
}

static bool run_reduce(struct trib_engine *e, struct trib_run *run, struct trib_task *t)
{
    const struct trib_payload_ops *ops = trib_payload_of(run, t);
    const struct trib_contrib *m = &run->program.contribs[t->contrib];

    assert(t->contrib + t->n_contribs <= run->program.n_contribs);
    if (!members_due(e, run, t))
        return false;
    struct trib_chunk c = ops->chunk(run, t);
    if (!ops->ready(e, run, t, &c) || members_wrong(e, run, t, &c))
        return false;
    trib_trace_now(&e->trace, TRIB_TRACE_REDUCE_BEGIN, -1, c.index, c.n);
    trib_status_t st = ops->reduce(e, run, t, &c);
    trib_trace_now(&e->trace, TRIB_TRACE_REDUCE_END, -1, c.index, c.n);
    if (st != TRIB_OK) {
        trib_engine_protocol(e, run->program.neighbors[m->neighbor].peer,
                             "an invalid contribution");
        return false;
    }
    for (uint32_t i = 0; i < t->n_contribs; i++)
        release_member(e, run, &m[i]);
    if (run->desc.quorum.need)
        trib_quorum_closed(e, run, t, &c);
    return true;
}

static bool run_copy_in(struct trib_engine *e, struct trib_run *run,
                        struct trib_task *t)
{
    const struct trib_payload_ops *ops = trib_payload_of(run, t);
    const struct trib_neighbor *neighbor = &run->program.neighbors[t->neighbor];
    const struct trib_contrib from = {t->neighbor, t->lane, t->ordinal};
    struct trib_entry *entry = trib_run_due(e, run, &from, t->done);

    if (!entry)
        return false;
    struct trib_chunk c = ops->chunk(run, t);
    assert(c.n <= run->desc.piece || trib_share_task(run, t));
    if (!ops->ready(e, run, t, &c) ||
        frame_is_wrong(e, run, neighbor->peer, entry, c.index) ||
        (run->desc.check.sum && trib_checksum_wrong(e, run, t, &from, &c)))
        return false;
    trib_trace_now(&e->trace, TRIB_TRACE_DECODE_BEGIN, neighbor->peer, c.index, c.n);
    trib_status_t st = ops->copy_in(e, run, t, &c, entry);
    trib_trace_now(&e->trace, TRIB_TRACE_DECODE_END, neighbor->peer, c.index, c.n);
    if (st != TRIB_OK) {
        trib_engine_protocol(e, neighbor->peer, "an invalid result");
        return false;
    }
    count_received(e, run, &entry->frame);
    trib_link_release(&e->links[neighbor->peer], &e->arena, t->lane);
    return true;
}

static bool run_copy(struct trib_engine *e, struct trib_run *run, struct trib_task *t)
{
    const struct trib_payload_ops *ops = trib_payload_of(run, t);
    struct trib_chunk c = ops->chunk(run, t);

    if (!ops->ready(e, run, t, &c))
        return false;
    if (ops->copy(e, run, t, &c) != TRIB_OK)
        trib_engine_protocol(e, e->rank, "an invalid encoded chunk");
    return !e->failed;
}

static bool run_task(struct trib_engine *e, struct trib_run *run, struct trib_task *t)
{
    const struct trib_task *tasks = run->program.tasks;

    if (t->dep != TRIB_STEP_NO_DEP && tasks[t->dep].done <= t->done)
        return false;
    switch ((enum trib_task_kind)t->kind) {
    case TRIB_TASK_SEND:
        return run_send(e, run, t);
    case TRIB_TASK_REDUCE:
        return run_reduce(e, run, t);
    case TRIB_TASK_COPY_IN:
        return run_copy_in(e, run, t);
    case TRIB_TASK_COPY:
        return run_copy(e, run, t);
    }
    return false;
}

/* Return true if the operation must still wait for its neighbors: for ADVERT frames,
 * which the next operation would find otherwise, for GET frames that peers have not
 * read, or for unfinished transport writes. */
static bool edges_pending(struct trib_engine *e, struct trib_run *run)
{
    for (uint32_t i = 0; i < run->program.n_neighbors; i++) {
        struct trib_neighbor *neighbor = &run->program.neighbors[i];
        struct trib_link *l = &e->links[neighbor->peer];
        if (neighbor->advert_out || neighbor->advert_in || l->n_zcopies)
            return true;
        for (int lane = 0; run->desc.zero_copy && lane < TRIB_LANES; lane++) {
            uint32_t released =
                atomic_load_explicit(&l->my_credits[lane], memory_order_acquire);
            if ((int32_t)(released - neighbor->ref_end[lane]) < 0)
                return true;
        }
    }
    return false;
}

static bool exchange_adverts(struct trib_engine *e, struct trib_run *run)
{
    bool moved = false;

    for (uint32_t i = 0; !e->failed && i < run->program.n_neighbors; i++) {
        struct trib_neighbor *neighbor = &run->program.neighbors[i];
        if (neighbor->advert_out)
            moved |= send_advert(e, run, neighbor);
        if (neighbor->advert_in)
            moved |= take_advert(e, run, neighbor);
    }
    return moved;
}

/* Run one round of every task that can run. A sum is sent from the place where its
 * kernel stored it, before the next sum. */
static bool sweep(struct trib_engine *e, struct trib_run *run)
{
    bool moved = false;

    trib_engine_trace_under_way(e, run);
    if (!e->failed)
        trib_encode_ahead_post(e, run);
    for (uint32_t i = 0; !e->failed && i < run->program.n_tasks; i++) {
        struct trib_task *t = &run->program.tasks[i];
        if (trib_task_over(run, t) || !run_task(e, run, t))
            continue;
        assert(run->now.remaining > 0);
        moved = true;
        t->done++;
        run->now.remaining -= trib_task_over(run, t);
    }
    return moved;
}

static void slots_failed(struct trib_engine *e, int peer, trib_status_t st)
{
    char why[sizeof(e->err->text)];

    if (st == TRIB_ERR_PROTOCOL) {
        trib_engine_protocol(e, peer, "an advert of nonexistent slots");
        return;
    }
    snprintf(why, sizeof(why), "%s", trib_error_text(e->err));
    trib_engine_unable(e, peer, st, why);
}

/* Import the slots that peers have advertised since the last call. */
static bool take_adverts(struct trib_engine *e, const struct trib_run *run)
{
    bool moved = false;

    for (uint32_t i = 0; i < run->program.n_neighbors && !e->failed; i++) {
        struct trib_link *l = &e->links[run->program.neighbors[i].peer];
        if (l->slots)
            continue;
        trib_status_t st = trib_link_take_advert(l, &e->arena);
        if (st < 0)
            slots_failed(e, l->peer, st);
        moved |= st == TRIB_OK;
    }
    return moved;
}

/* Send the credits, grants and adverts that a full transport refused: peers wait. */
static void pay_credits(struct trib_engine *e, const struct trib_run *run)
{
    trib_grants_pass(&e->arena, e->links);
    for (uint32_t i = 0; i < run->program.n_neighbors && !e->failed; i++) {
        struct trib_link *l = &e->links[run->program.neighbors[i].peer];
        trib_status_t st = l->lost ? TRIB_OK : trib_link_advertise(l, &e->arena);
        if (st != TRIB_OK)
            slots_failed(e, l->peer, st);
        for (int lane = 0; lane < TRIB_LANES && !l->lost; lane++)
            if (l->recv[lane].owed)
                trib_link_give_back(l, lane);
    }
}

/* Do everything that the active operation can do now. */
static bool advance(struct trib_engine *e, struct trib_run *run)
{
    bool moved = e->arena.awaited && take_adverts(e, run);

    if (run->short_path)
        return (run->now.remaining && trib_short_pass(e, run)) || moved;
    assert(run->now.state == TRIB_RUN_ACTIVE);
    if (run->desc.zero_copy)
        moved |= exchange_adverts(e, run);
    while (sweep(e, run) || (!e->failed && trib_encode_ahead_help(e, run))) {
        moved = true;
        if (!e->all_mapped)
            (void)trib_engine_events(e);
        if (e->give_way)
            break; /* the caller's idle function may be due */
    }
    return moved;
}

bool trib_engine_progress(struct trib_engine *e)
{
    struct trib_run *run = e->head;
    bool moved = !e->all_mapped && trib_engine_events(e);

    if (e->has_backlog && !e->failed)
        moved |= trib_quorum_progress(e);
    if (e->p2p && !e->failed)
        moved |= e->p2p->ops->progress(e);
    if (e->failed || !run)
        return (e->failed && trib_engine_end(e)) || moved;
    moved |= advance(e, run);
    if (e->has_backlog && !e->failed)
        moved |= trib_quorum_progress(e);
    if (!e->all_mapped && !e->failed)
        pay_credits(e, run);
    if (e->failed)
        return trib_engine_end(e) || moved;
    if (run->now.remaining == 0 && (run->short_path || !edges_pending(e, run))) {
        finish(e, TRIB_OK);
        moved = true;
    }
    if (!moved)
        trib_trace_wait(&e->trace);
    return moved;
}
