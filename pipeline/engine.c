/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why this cannot dead-lock. Take the one order of all steps of all ranks that
 * schedule.h demands, repeated round after round, and in it the first step that is not
 * done. Its dep is before it, so done. If it receives, its SEND is before it, so the
 * frame is there, and all earlier frames of its lane were taken. If it sends, the RECV of
 * the frame before it on its lane is before it, too, so all W >= 1 slots are free, and
 * their credits are on the way. A k-ary task waits for several RECVs at once: they
 * stand next to each other in the list, and no SEND that they match depends on one of
 * them. So the first step that is not done can always run.
 * A user who feeds a vector piecewise only delays own contributions, which depend on
 * nothing; chunks are taken in the same order of rounds on all ranks.
 */
#include "pipeline/engine.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/meminfo.h"
#include "base/time.h"
#include "pipeline/move.h"
#include "pipeline/idle.h"

/* A SEND takes its word from the store if the same word has another use. */
static void mark_stored(struct trib_program *p)
{
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        struct trib_task *t = &p->tasks[i];
        if (t->kind != TRIB_TASK_SEND)
            continue;
        if (t->flags & (TRIB_TASK_FINAL | TRIB_TASK_FORWARD))
            t->flags |= TRIB_TASK_STORED;
        for (uint32_t j = 0; j < p->n_tasks; j++) {
            const struct trib_task *u = &p->tasks[j];
            bool same_word = u->kind == TRIB_TASK_SEND
                                 ? u->flags & t->flags & TRIB_TASK_OWN
                                 : u->flags & TRIB_TASK_OWN_SENT;
            if (i != j && u->chunk == t->chunk && (t->flags & TRIB_TASK_OWN) && same_word)
                t->flags |= TRIB_TASK_STORED;
        }
    }
}

static trib_status_t prepare_codec(struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;
    size_t floats = (d->piece ? d->piece : 1) * sizeof(float);
    size_t bound = trib_codec_bound(d->codec, d->piece);
    uint32_t n_chunks = run->program.n_chunks;

    mark_stored(&run->program);
    run->acc = malloc(floats);
    run->stage = malloc(floats);
    run->work = malloc(floats);
    run->word = malloc(bound + 1);
    run->codec_scratch =
        aligned_alloc(64, (trib_codec_scratch(d->codec, d->piece) + 64) / 64 * 64);
    run->stores = calloc(n_chunks, sizeof(*run->stores));
    if (!run->acc || !run->stage || !run->work || !run->word || !run->codec_scratch ||
        !run->stores || trib_feedback_prepare(run) != TRIB_OK)
        return TRIB_ERR_NO_MEMORY;
    for (uint32_t c = 0; c < n_chunks; c++) {
        run->stores[c].bytes = malloc(bound + 1);
        if (!run->stores[c].bytes)
            return TRIB_ERR_NO_MEMORY;
    }
    return TRIB_OK;
}

/* Sums of chunks that end up elsewhere need a place of their own. */
static trib_status_t prepare_scratch(struct trib_engine *e, struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;
    bool foreign = d->op.coll == TRIB_REDUCE_SCATTER ||
                   (d->op.coll == TRIB_REDUCE && (int)d->op.root != e->rank);

    for (uint32_t i = 0; foreign && i < run->program.n_tasks; i++) {
        const struct trib_task *t = &run->program.tasks[i];
        bool elsewhere =
            d->op.coll == TRIB_REDUCE || t->chunk != (uint32_t)e->rank;
        if (t->kind == TRIB_TASK_REDUCE && elsewhere && !run->scratch_value) {
            run->scratch_value = malloc(d->total * d->element + 64);
            if (!run->scratch_value)
                return TRIB_ERR_NO_MEMORY;
        }
    }
    return TRIB_OK;
}

trib_status_t trib_engine_link(struct trib_engine *e, int peer)
{
    struct trib_link *l = &e->links[peer];
    const struct trib_peer *p = &e->peers[peer];
    trib_status_t st = TRIB_OK;

    /* Of the arena's block for each peer those of connected ones alone are touched. */
    if (!l->opened)
        st = trib_meminfo_check(trib_edge_bytes(e->arena.window, e->arena.slot_bytes, true),
                                e->err);
    if (st == TRIB_OK)
        st = trib_link_connect(l, &e->arena, peer, &p->address, &p->arena);
    if (st == TRIB_OK)
        st = trib_link_open(l, &e->arena);
    if (st == TRIB_OK && !l->mapped)
        e->all_mapped = false;
    return st;
}

static trib_status_t prepare_sources(struct trib_run *run)
{
    const struct trib_program *p = &run->program;
    uint32_t most = 0;

    for (uint32_t i = 0; i < p->n_tasks; i++)
        if (p->tasks[i].kind == TRIB_TASK_REDUCE && p->tasks[i].n_members > most)
            most = p->tasks[i].n_members;
    run->sources = calloc((size_t)most + 1, sizeof(*run->sources));
    return run->sources ? TRIB_OK : TRIB_ERR_NO_MEMORY;
}

trib_status_t trib_run_prepare(struct trib_engine *e, struct trib_run *run)
{
    struct trib_program *p = &run->program;
    trib_status_t st = TRIB_OK;

    const char *operation = run->desc.op.leaving ? "trib_free_comm"
                                                 : trib_coll_name(run->desc.op.coll);

    for (uint32_t i = 0; i < p->n_edges && st == TRIB_OK; i++)
        st = trib_engine_connect(e, p->edges[i].peer, operation);
    if (st != TRIB_OK)
        return st;
    run->frame = (struct trib_frame){.magic = TRIB_FRAME_MAGIC,
                                     .count = run->desc.count,
                                     .signature = trib_frame_signature(&run->desc.op),
                                     .digest = run->desc.digest};
    st = prepare_sources(run);
    if (st == TRIB_OK)
        st = prepare_scratch(e, run);
    if (st == TRIB_OK && run->desc.codec)
        st = prepare_codec(run);
    if (st == TRIB_OK && run->desc.op.feed != TRIB_FEED_WHOLE) {
        run->unfed = calloc((size_t)run->desc.rounds * p->n_chunks, sizeof(*run->unfed));
        if (!run->unfed)
            st = TRIB_ERR_NO_MEMORY;
    }
    if (st == TRIB_ERR_NO_MEMORY)
        return trib_fail(e->err, st, "no memory for a plan of %zu elements",
                         run->desc.count);
    return st;
}

void trib_run_dispose(struct trib_run *run)
{
    for (uint32_t c = 0; run->stores && c < run->program.n_chunks; c++)
        free(run->stores[c].bytes);
    free(run->stores);
    free(run->acc);
    free(run->stage);
    free(run->work);
    free(run->word);
    free(run->codec_scratch);
    trib_feedback_dispose(run);
    free(run->scratch_value);
    free(run->sources);
    free((void *)run->unfed);
    trib_program_free(&run->program);
}

static void refill_feed(struct trib_run *run)
{
    for (uint32_t r = 0; run->unfed && r < run->desc.rounds; r++) {
        for (uint32_t k = 0; k < run->program.n_chunks; k++) {
            struct trib_chunk c = trib_run_chunk(run, r, k);
            atomic_store_explicit(&run->unfed[c.index], (uint32_t)c.n,
                                  memory_order_relaxed);
        }
    }
}

/* Elements of [first, end) in the chunk of `first`. */
static uint32_t in_chunk(const struct trib_run *run, size_t first, size_t end)
{
    size_t to = (first / run->desc.piece + 1) * run->desc.piece;

    return (uint32_t)((end < to ? end : to) - first);
}

bool trib_run_feed(struct trib_run *run, size_t first, size_t count)
{
    size_t piece = run->desc.piece, end = first + count;
    uint32_t n;

    for (size_t at = first; run->unfed && at < end; at += n) {
        n = in_chunk(run, at, end);
        if (atomic_load_explicit(&run->unfed[at / piece], memory_order_relaxed) < n)
            return false;
    }
    for (size_t at = first; run->unfed && at < end; at += n) {
        n = in_chunk(run, at, end);
        atomic_fetch_sub_explicit(&run->unfed[at / piece], n, memory_order_release);
    }
    return true;
}

static void activate(struct trib_engine *e, struct trib_run *run)
{
    struct trib_program *p = &run->program;

    run->frame.seq = ++e->seq;
    run->remaining = p->n_tasks;
    run->moved = 0;
    for (uint32_t i = 0; i < p->n_tasks; i++)
        p->tasks[i].done = p->tasks[i].in_slot = 0, p->tasks[i].placed = 0;
    for (uint32_t i = 0; run->stores && i < p->n_chunks; i++)
        run->stores[i].round = 0;
    for (uint32_t i = 0; i < p->n_edges; i++) {
        struct trib_edge *edge = &p->edges[i];
        struct trib_link *l = &e->links[edge->peer];
        edge->open_out = edge->open_in =
            run->desc.zero_copy && (l->mapped || run->desc.place);
        edge->peer_send = edge->peer_recv = (struct trib_view){.base = NULL};
        for (int lane = 0; lane < TRIB_LANES; lane++) {
            uint32_t open = lane == TRIB_LANE_UP && edge->open_out;
            edge->send_base[lane] = l->send[lane].next + open;
            edge->recv_base[lane] = l->recv[lane].next + open;
            edge->ref_end[lane] = l->send[lane].released;
        }
    }
    if (run->desc.zero_copy)
        trib_run_open(e, run);
    if (run->desc.codec)
        trib_feedback_begin(e, run);
    atomic_store_explicit(&run->state, TRIB_RUN_ACTIVE, memory_order_relaxed);
    trib_trace_now(&e->trace, TRIB_TRACE_OP_BEGIN, -1, 0, run->desc.total);
}

static void finish(struct trib_engine *e, trib_status_t status)
{
    struct trib_run *run = e->head;

    e->head = run->next;
    if (!e->head)
        e->tail = NULL;
    run->status = status;
    trib_trace_now(&e->trace, TRIB_TRACE_OP_END, -1, 0, run->desc.total);
    if (status == TRIB_OK)
        e->stats.operations++;
    atomic_store_explicit(&run->state, TRIB_RUN_DONE, memory_order_release);
    if (e->head && !e->failed)
        activate(e, e->head);
}

void trib_run_start(struct trib_engine *e, struct trib_run *run, const void *send,
                    void *recv)
{
    assert(run->state != TRIB_RUN_QUEUED && run->state != TRIB_RUN_ACTIVE);
    trib_run_bind(e, run, send, recv);
    run->next = NULL;
    run->step++;
    if (run->unfed)
        refill_feed(run);
    atomic_store_explicit(&run->state, TRIB_RUN_QUEUED, memory_order_relaxed);
    if (e->tail)
        e->tail->next = run;
    else
        e->head = run;
    e->tail = run;
    if (e->failed) {
        while (e->head)
            finish(e, e->failed);
    } else if (e->head == run) {
        activate(e, run);
    }
}

void trib_engine_fail(struct trib_engine *e, trib_status_t status, const char *text)
{
    if (e->failed)
        return;
    (void)trib_fail(&e->failure, status, "%s", text);
    atomic_store_explicit(&e->failed, status, memory_order_release);
    struct trib_notice n = {.kind = TRIB_NOTICE_FAILED, .status = status};
    size_t len = strlen(text);
    memcpy(n.text, text, len < sizeof(n.text) ? len : sizeof(n.text) - 1);
    trib_engine_tell(e, &n);
    while (e->head)
        finish(e, status);
    trib_engine_tell_rest(e, &n);
}

static bool frame_is_wrong(struct trib_engine *e, struct trib_run *run, int peer,
                           const struct trib_cell *cell, uint32_t chunk)
{
    const struct trib_frame *f = &cell->frame;
    char text[400];

    if (trib_frame_same(&run->frame, f) && f->chunk == chunk)
        return false;
    trib_status_t st =
        trib_frame_check(&run->frame, f, e->rank, peer, text, sizeof(text));
    if (st == TRIB_OK) {
        trib_engine_protocol(e, peer, "a chunk that is not due");
        return true;
    }
    trib_engine_fail(e, st, text);
    return true;
}

/* in_place: payload that the peer reads, or finds, where it is. */
static void count_frame(struct trib_engine *e, struct trib_run *run,
                        const struct trib_frame *f, size_t in_place)
{
    run->moved++;
    e->stats.messages++;
    e->stats.wire_bytes += sizeof(*f) + f->bytes + in_place;
}

static bool send_open(struct trib_engine *e, struct trib_run *run,
                      struct trib_edge *edge)
{
    struct trib_link *l = &e->links[edge->peer];

    const struct trib_open *open = l->mapped ? &run->open : &run->open_far;
    size_t bytes = trib_open_bytes(open);

    if (!trib_link_can_send(l, TRIB_LANE_UP, bytes))
        return false;
    struct trib_cell *cell = trib_link_cell(l, &e->arena, TRIB_LANE_UP);
    cell->frame = run->frame;
    cell->frame.kind = TRIB_FRAME_OPEN;
    cell->frame.bytes = (uint32_t)bytes;
    trib_open_write(open, trib_link_to_send(l, &e->arena, TRIB_LANE_UP, bytes));
    if (trib_link_publish(l, &e->arena, TRIB_LANE_UP) != TRIB_OK)
        return false;
    count_frame(e, run, &cell->frame, 0);
    edge->open_out = false;
    return true;
}

static bool take_open(struct trib_engine *e, struct trib_run *run,
                      struct trib_edge *edge)
{
    struct trib_link *l = &e->links[edge->peer];
    struct trib_cell *cell = trib_link_peek(l, &e->arena, TRIB_LANE_UP);

    if (!cell || frame_is_wrong(e, run, edge->peer, cell, 0))
        return false;
    size_t bytes = cell->frame.bytes;
    struct trib_open open;
    if (cell->frame.kind != TRIB_FRAME_OPEN || bytes > TRIB_OPEN_MAX ||
        !trib_open_read(trib_link_received(l, &e->arena, TRIB_LANE_UP, cell), bytes,
                        &open)) {
        trib_engine_protocol(e, edge->peer, "no OPEN frame first");
        return false;
    }
    struct trib_view send = trib_engine_view(e, l, &open.send), recv = {.base = NULL};
    if (!e->failed)
        recv = trib_engine_view(e, l, &open.recv);
    if (e->failed)
        return false;
    edge->peer_send = send;
    edge->peer_recv = recv;
    trib_link_release(l, &e->arena, TRIB_LANE_UP);
    edge->open_in = false;
    run->moved++;
    return true;
}

static bool fed(const struct trib_run *run, const struct trib_task *t,
                const struct trib_chunk *c)
{
    return !run->unfed || !(t->flags & TRIB_TASK_OWN) ||
           atomic_load_explicit(&run->unfed[c->index], memory_order_acquire) == 0;
}

static bool has_room(struct trib_engine *e, const struct trib_run *run,
                     const struct trib_task *t, const struct trib_chunk *c)
{
    struct trib_link *l = &e->links[run->program.edges[t->edge].peer];
    size_t bytes = c->n * run->desc.element;

    if (run->desc.codec)
        bytes = e->arena.slot_bytes;
    else if (bytes > l->small)
        bytes = trib_raw_payload(e, run, t, c);
    return trib_link_can_send(l, t->lane, bytes);
}

/* Memory that the transport cannot reach will not be within its reach later: for want of
 * locked memory, say. The own goes through slots from now on; the peer's is an error. */
static void carry_failed(struct trib_engine *e, struct trib_run *run, struct trib_task *t,
                         const struct trib_chunk *c, trib_status_t st)
{
    int peer = run->program.edges[t->edge].peer;
    const struct trib_carry *carry = &e->links[peer].carry[t->lane];
    char why[sizeof(e->err->text)];

    if (st == TRIB_ERR_NO_RESOURCE || st == TRIB_ERR_PEER_LOST || !carry->len)
        return;
    if (carry->from) {
        trib_memory_copy(&e->memories, carry->from);
        trib_error_clear(e->err);
        trib_raw_copy_carry(e, run, t, c);
        return;
    }
    snprintf(why, sizeof(why), "%s", trib_error_text(e->err));
    trib_engine_unable(e, peer, st, why);
}

static bool run_send(struct trib_engine *e, struct trib_run *run, struct trib_task *t)
{
    struct trib_edge *edge = &run->program.edges[t->edge];
    struct trib_link *l = &e->links[edge->peer];
    uint32_t turn = trib_send_turn(edge, t, t->done);

    bool unopened = edge->open_out || (edge->open_in && (t->flags & TRIB_TASK_FINAL));

    if (l->send[t->lane].next != turn || unopened)
        return false;
    struct trib_chunk c = trib_run_chunk(run, t->done, t->chunk);
    if (!has_room(e, run, t, &c))
        return false;
    if (!fed(run, t, &c))
        return false;
    if (!trib_coded_store_ready(run, t))
        return false;
    struct trib_cell *cell = trib_link_cell(l, &e->arena, t->lane);
    if (!l->send[t->lane].filled) {
        if (run->desc.codec)
            trib_coded_fill(e, run, t, &c, cell);
        else
            trib_raw_fill(e, run, t, &c, cell);
    }
    struct trib_frame f = cell->frame;
    trib_status_t st = trib_link_publish(l, &e->arena, t->lane);
    if (st != TRIB_OK) {
        carry_failed(e, run, t, &c, st);
        return false;
    }
    trib_trace_now(&e->trace, TRIB_TRACE_POST, edge->peer, f.chunk, f.bytes);
    count_frame(e, run, &f, f.kind == TRIB_FRAME_DATA ? 0 : c.n * run->desc.element);
    return true;
}

/* The cell of a frame whose turn it is, or NULL. */
static struct trib_cell *due_cell(struct trib_engine *e, struct trib_edge *edge,
                                  int lane, uint32_t round, uint32_t ordinal)
{
    struct trib_link *l = &e->links[edge->peer];
    uint32_t turn = edge->recv_base[lane] + round * edge->recvs[lane] + ordinal;

    if (edge->open_in || l->recv[lane].next != turn)
        return NULL;
    return trib_link_peek(l, &e->arena, lane);
}

static bool run_reduce(struct trib_engine *e, struct trib_run *run, struct trib_task *t)
{
    struct trib_program *p = &run->program;
    struct trib_member *m = &p->members[t->member];

    for (uint32_t i = 0; i < t->n_members; i++) {
        struct trib_edge *edge = &p->edges[m[i].edge];
        if (!due_cell(e, edge, m[i].lane, t->done, m[i].ordinal))
            return false;
    }
    struct trib_chunk c = trib_run_chunk(run, t->done, t->chunk);
    if (!fed(run, t, &c) ||
        (run->stores && !trib_coded_store_free(run, t->chunk, t->done)))
        return false;
    for (uint32_t i = 0; i < t->n_members; i++) {
        int peer = p->edges[m[i].edge].peer;
        struct trib_cell *cell = trib_link_peek(&e->links[peer], &e->arena, m[i].lane);
        if (frame_is_wrong(e, run, peer, cell, c.index))
            return false;
    }
    trib_trace_now(&e->trace, TRIB_TRACE_REDUCE_BEGIN, -1, c.index, c.n);
    trib_status_t st = run->desc.codec ? trib_coded_reduce(e, run, t, &c)
                                       : trib_raw_reduce(e, run, t, &c);
    trib_trace_now(&e->trace, TRIB_TRACE_REDUCE_END, -1, c.index, c.n);
    if (st != TRIB_OK) {
        trib_engine_protocol(e, p->edges[m->edge].peer,
                             "a contribution that is not valid");
        return false;
    }
    for (uint32_t i = 0; i < t->n_members; i++)
        trib_link_release(&e->links[p->edges[m[i].edge].peer], &e->arena, m[i].lane);
    run->moved += t->n_members;
    return true;
}

static bool run_copy_in(struct trib_engine *e, struct trib_run *run,
                        struct trib_task *t)
{
    struct trib_edge *edge = &run->program.edges[t->edge];
    struct trib_cell *cell = due_cell(e, edge, t->lane, t->done, t->ordinal);

    if (!cell || ((t->flags & TRIB_TASK_RELAYED) && run->stores &&
                  !trib_coded_store_free(run, t->chunk, t->done)))
        return false;
    struct trib_chunk c = trib_run_chunk(run, t->done, t->chunk);
    if (frame_is_wrong(e, run, edge->peer, cell, c.index))
        return false;
    trib_trace_now(&e->trace, TRIB_TRACE_DECODE_BEGIN, edge->peer, c.index, c.n);
    trib_status_t st = run->desc.codec ? trib_coded_copy_in(e, run, t, &c, cell)
                                       : trib_raw_copy_in(e, run, t, &c, cell);
    trib_trace_now(&e->trace, TRIB_TRACE_DECODE_END, edge->peer, c.index, c.n);
    if (st != TRIB_OK) {
        trib_engine_protocol(e, edge->peer, "a result that is not valid");
        return false;
    }
    trib_link_release(&e->links[edge->peer], &e->arena, t->lane);
    run->moved++;
    return true;
}

static bool run_copy(struct trib_engine *e, struct trib_run *run, struct trib_task *t)
{
    struct trib_chunk c = trib_run_chunk(run, t->done, t->chunk);

    if (!fed(run, t, &c) || !trib_coded_store_ready(run, t))
        return false;
    if (!run->desc.codec)
        trib_raw_copy(e, run, &c);
    else if (trib_coded_copy(e, run, t, &c) != TRIB_OK)
        trib_engine_protocol(e, e->rank, "an own code word that is not valid");
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

/* Not done before all OPENs are exchanged, which else the next operation would find, and
 * before the peers have read from the buffers that REF frames named, and the transport from
 * those that it writes out of. */
static bool edges_pending(struct trib_engine *e, struct trib_run *run)
{
    for (uint32_t i = 0; i < run->program.n_edges; i++) {
        struct trib_edge *edge = &run->program.edges[i];
        struct trib_link *l = &e->links[edge->peer];
        if (edge->open_out || edge->open_in || l->carrying)
            return true;
        for (int lane = 0; run->desc.zero_copy && lane < TRIB_LANES; lane++) {
            uint32_t released =
                atomic_load_explicit(&l->my_credits[lane], memory_order_acquire);
            if ((int32_t)(released - edge->ref_end[lane]) < 0)
                return true;
        }
    }
    return false;
}

static bool exchange_opens(struct trib_engine *e, struct trib_run *run)
{
    bool moved = false;

    for (uint32_t i = 0; !e->failed && i < run->program.n_edges; i++) {
        struct trib_edge *edge = &run->program.edges[i];
        if (edge->open_out)
            moved |= send_open(e, run, edge);
        if (edge->open_in)
            moved |= take_open(e, run, edge);
    }
    return moved;
}

/* One round of every task that can run: a sum goes out, to the places that its kernel
 * stored it in, before the next one is made. */
static bool sweep(struct trib_engine *e, struct trib_run *run)
{
    bool moved = false;

    for (uint32_t i = 0; !e->failed && i < run->program.n_tasks; i++) {
        struct trib_task *t = &run->program.tasks[i];
        if (t->done == run->desc.rounds || !run_task(e, run, t))
            continue;
        moved = true;
        if (++t->done == run->desc.rounds)
            run->remaining--;
    }
    return moved;
}

static void slots_failed(struct trib_engine *e, int peer, trib_status_t st)
{
    char why[sizeof(e->err->text)];

    if (st == TRIB_ERR_PROTOCOL) {
        trib_engine_protocol(e, peer, "slots that do not exist");
        return;
    }
    snprintf(why, sizeof(why), "%s", trib_error_text(e->err));
    trib_engine_unable(e, peer, st, why);
}

/* Slots of peers that have come to use their side of an edge. */
static bool take_grants(struct trib_engine *e, const struct trib_run *run)
{
    bool moved = false;

    for (uint32_t i = 0; i < run->program.n_edges && !e->failed; i++) {
        struct trib_link *l = &e->links[run->program.edges[i].peer];
        if (l->slots)
            continue;
        trib_status_t st = trib_link_take_grant(l, &e->arena);
        if (st < 0)
            slots_failed(e, l->peer, st);
        moved |= st == TRIB_OK;
    }
    return moved;
}

/* Credits and slots that the transport had no room for, or the peers would wait for ever. */
static void pay_credits(struct trib_engine *e, const struct trib_run *run)
{
    for (uint32_t i = 0; i < run->program.n_edges && !e->failed; i++) {
        struct trib_link *l = &e->links[run->program.edges[i].peer];
        trib_status_t st = l->lost ? TRIB_OK : trib_link_grant(l, &e->arena);
        if (st != TRIB_OK)
            slots_failed(e, l->peer, st);
        for (int lane = 0; lane < TRIB_LANES && !l->lost; lane++)
            if (l->recv[lane].owed)
                trib_link_give_back(l, &e->arena, lane);
    }
}

bool trib_engine_progress(struct trib_engine *e)
{
    struct trib_run *run = e->head;
    bool moved = false;

    if (!e->all_mapped)
        moved = trib_engine_events(e);
    if (!run || e->failed)
        return moved;
    if (e->arena.awaited)
        moved |= take_grants(e, run);
    if (run->desc.zero_copy)
        moved |= exchange_opens(e, run);
    while (sweep(e, run)) {
        moved = true;
        if (!e->all_mapped)
            (void)trib_engine_events(e);
    }
    if (e->failed) /* the run is done, and its plan may be freed */
        return moved;
    if (!e->all_mapped)
        pay_credits(e, run);
    if (run->remaining == 0 && !edges_pending(e, run)) {
        finish(e, TRIB_OK);
        moved = true;
    }
    if (!moved)
        trib_trace_wait(&e->trace);
    return moved;
}
