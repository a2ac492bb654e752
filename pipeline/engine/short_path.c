/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/engine/short_path.h"
#include "pipeline/run/engine_trace.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/engine/short_billboard.h"
#include "pipeline/payload/chunk_memory.h"
#include "pipeline/payload/payload.h"
#include "pipeline/payload/payload_raw.h"
#include "pipeline/payload/raw_sum.h"
#include "pipeline/run/failure.h"

struct short_chunk {
    struct trib_chunk chunk;
    uint32_t bytes; /* size of the chunk */
};

struct trib_short_path {
    struct short_chunk *chunks; /* [n_chunks] */
    struct trib_link **links; /* [n_neighbors] */
    uint32_t *arrived; /* [n_tasks] of a REDUCE: number of leading contributions whose
                        * frames have arrived */
    const uint8_t **sources; /* [contributions to a reduction + 1] */
    trib_reduce_fn reduce;
    uint32_t first; /* first unfinished task */
    struct trib_short_billboard *billboard; /* used instead of links; or NULL */
};

/* Return true if the run needs nothing of the general path, whatever its buffers
 * contain. */
static bool fits(const struct trib_engine *e, const struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;
    const bool checked = d->check.finite || d->check.sum || d->check.norm > 0;
    const size_t bytes = d->piece * d->element;

    if (d->rounds != 1 || d->zero_copy || d->share_piece || d->may_undo || checked)
        return false;
    if (d->blocks && (d->blocks->local || d->blocks->two_lengths))
        return false;
    if (e->size != e->ranks || run->now.unfed || !trib_payload_is_plain(run))
        return false;
    for (uint32_t i = 0; i < run->program.n_neighbors; i++)
        if (bytes > e->links[run->program.neighbors[i].peer].small)
            return false;
    return bytes <= TRIB_SMALL_BYTES;
}

trib_status_t trib_short_prepare(const struct trib_engine *e, struct trib_run *run)
{
    const struct trib_program *p = &run->program;

    assert(!run->short_path && run->payload);
    if (!fits(e, run))
        return TRIB_OK;
    struct trib_short_path *s = calloc(1, sizeof(*s));
    run->short_path = s;
    if (!s)
        return TRIB_ERR_NO_MEMORY;
    s->chunks = calloc((size_t)p->n_chunks + 1, sizeof(*s->chunks));
    s->links = calloc((size_t)p->n_neighbors + 1, sizeof(struct trib_link *));
    s->arrived = calloc((size_t)p->n_tasks + 1, sizeof(*s->arrived));
    s->sources = calloc((size_t)trib_run_most_contribs(run) + 1, sizeof(*s->sources));
    if (!s->chunks || !s->links || !s->arrived || !s->sources)
        return TRIB_ERR_NO_MEMORY;
    for (uint32_t k = 0; k < p->n_chunks; k++) {
        struct trib_chunk c = trib_vector_chunk(run, 0, k);
        s->chunks[k] = (struct short_chunk){c, (uint32_t)(c.n * run->desc.element)};
    }
    for (uint32_t i = 0; i < p->n_neighbors; i++)
        s->links[i] = &e->links[p->neighbors[i].peer];
    s->reduce = e->kernels->reduce[run->desc.op.dtype][run->desc.op.op];
    return trib_billboard_prepare(e, run, &s->billboard);
}

void trib_short_dispose(struct trib_run *run)
{
    struct trib_short_path *s = run->short_path;

    if (!s)
        return;
    trib_billboard_dispose(s->billboard);
    free(s->chunks);
    free(s->links);
    free(s->arrived);
    free(s->sources);
    free(s);
    run->short_path = NULL;
}

/* Return the core of this thread, plus 1. */
static uint32_t this_core(void)
{
    return (uint32_t)sched_getcpu() + 1;
}

void trib_short_begin(struct trib_engine *e, struct trib_run *run)
{
    struct trib_short_path *s = run->short_path;
    struct trib_program *p = &run->program;

    assert(e->head == run && run->desc.rounds == 1);
    if (e->oversubscribed)
        e->core = this_core();
    if (s->billboard) {
        trib_billboard_begin(e, run, s->billboard);
        return;
    }
    run->now.remaining = p->n_tasks;
    s->first = 0;
    for (uint32_t i = 0; i < p->n_tasks; i++)
        p->tasks[i].done = p->tasks[i].in_slot = s->arrived[i] = 0;
    for (uint32_t i = 0; i < p->n_neighbors; i++) {
        struct trib_neighbor *neighbor = &p->neighbors[i];
        const struct trib_link *l = s->links[i];
        for (int lane = 0; lane < TRIB_LANES; lane++) {
            neighbor->send_base[lane] = l->send[lane].next;
            neighbor->recv_base[lane] = l->recv[lane].next;
        }
    }
}

/* Return the entry of the `ordinal`-th frame of a neighbor and lane, or NULL. */
static inline struct trib_entry *due(struct trib_engine *e, const struct trib_run *run,
                                     uint16_t neighbor, int lane, uint32_t ordinal)
{
    struct trib_link *l = run->short_path->links[neighbor];

    if (l->recv[lane].next !=
        run->program.neighbors[neighbor].recv_base[lane] + ordinal)
        return NULL;
    return trib_link_peek(l, &e->arena, lane);
}

/* Return true if a frame belongs to another operation, or is out of order; the engine
 * is then marked. */
static inline bool is_wrong(struct trib_engine *e, const struct trib_run *run,
                            const struct trib_link *l, const struct trib_entry *entry,
                            const struct short_chunk *k)
{
    if (trib_frame_same(&run->now.frame, &entry->frame) &&
        entry->frame.chunk == k->chunk.index)
        return false;
    trib_engine_misfit(e, &entry->frame, l->peer);
    return true;
}

/* Return the elements in a frame; NULL if they are not exactly those of the chunk. */
static inline const uint8_t *elements_of(const struct trib_engine *e,
                                         struct trib_link *l, int lane,
                                         struct trib_entry *entry,
                                         const struct short_chunk *k)
{
    if (entry->frame.kind != TRIB_FRAME_DATA || entry->frame.bytes != k->bytes)
        return NULL;
    return trib_link_received(l, &e->arena, lane, entry);
}

static inline void take(struct trib_engine *e, struct trib_run *run,
                        struct trib_link *l, int lane, const struct short_chunk *k)
{
    run->now.moved++;
    l->core = l->seen[lane].place;
    e->stats.received_bytes += sizeof(struct trib_frame) + k->bytes;
    e->stats.received_dense_bytes += k->bytes;
    trib_link_release(l, &e->arena, lane);
}

static bool send_chunk(struct trib_engine *e, struct trib_run *run, struct trib_task *t,
                       const struct short_chunk *k)
{
    struct trib_link *l = run->short_path->links[t->neighbor];
    struct trib_send_lane *s = &l->send[t->lane];

    if (s->next !=
            run->program.neighbors[t->neighbor].send_base[t->lane] + t->ordinal ||
        !trib_link_can_send(l, t->lane, k->bytes))
        return false;
    struct trib_entry *entry = trib_link_entry(l, &e->arena, t->lane);
    if (!s->filled) {
        entry->frame = run->now.frame;
        entry->frame.kind = TRIB_FRAME_DATA;
        entry->frame.chunk = k->chunk.index;
        entry->frame.bytes = k->bytes;
        if (k->bytes && !t->in_slot) {
            const uint8_t *from = t->flags & TRIB_TASK_INPUT
                                      ? trib_run_input(run, &k->chunk)
                                      : trib_run_acc(run, &k->chunk);
            memcpy(trib_link_to_send(l, &e->arena, t->lane, k->bytes), from, k->bytes);
            e->stats.copied_bytes += k->bytes;
        }
        entry->place = e->core;
        trib_payload_count_out(e, t, k->bytes, k->bytes);
    }
    const uint64_t begin_ns = trib_trace_clock(&e->trace);
    if (trib_link_publish(l, &e->arena, t->lane) != TRIB_OK)
        return false; /* the transport is full, or an event will report a loss */
    run->now.moved++;
    e->stats.messages++;
    e->stats.wire_bytes += sizeof(struct trib_frame) + k->bytes;
    const struct trib_frame f = {.chunk = k->chunk.index, .bytes = k->bytes};
    trib_engine_trace_sent(e, begin_ns, l->peer, &f);
    return true;
}

/* Let the sum store its result also into the slots of the SENDs that are next on their
 * lanes. */
static void add_slots(struct trib_engine *e, struct trib_run *run,
                      const struct trib_task *t, const struct short_chunk *k,
                      struct trib_reduce_args *r)
{
    struct trib_program *p = &run->program;
    const uint32_t me = (uint32_t)(t - p->tasks);

    for (uint32_t i = p->next[me];
         i != TRIB_STEP_NO_DEP && r->n_dst < TRIB_REDUCE_MAX_DST; i = p->next[i]) {
        struct trib_task *f = &p->tasks[i];
        struct trib_link *l = run->short_path->links[f->neighbor];
        if (f->kind != TRIB_TASK_SEND || f->dep != me || !l->mapped ||
            l->send[f->lane].next !=
                p->neighbors[f->neighbor].send_base[f->lane] + f->ordinal ||
            !trib_link_can_send(l, f->lane, k->bytes))
            continue;
        r->dst[r->n_dst++] = trib_link_to_send(l, &e->arena, f->lane, k->bytes);
        f->in_slot = 1;
    }
}

static void sum(struct trib_engine *e, struct trib_run *run, const struct trib_task *t,
                const struct short_chunk *k)
{
    const int n_src = t->n_contribs + 1;
    struct trib_reduce_args r; /* large: set only the members that kernels read */

    r.dst[0] = trib_run_acc(run, &k->chunk);
    r.n_dst = 1;
    r.n = k->chunk.n;
    r.ranks = t->flags & TRIB_TASK_MEAN ? e->ranks : 0;
    r.stream = false;
    r.divisor = 0;
    r.weight = NULL;
    if (run->program.next[t - run->program.tasks] != TRIB_STEP_NO_DEP &&
        k->bytes > TRIB_ENTRY_PAYLOAD)
        add_slots(e, run, t, k, &r);
    if (n_src > TRIB_REDUCE_MAX_SRC) {
        r.n_src = 0;
        trib_raw_sum(e, run, run->short_path->sources, n_src, &r);
        return;
    }
    r.n_src = n_src;
    for (int i = 0; i < n_src; i++)
        r.src[i] = run->short_path->sources[i];
    run->short_path->reduce(&r);
}

/* Collect the elements of all contributions in rank order. If an earlier task has
 * filled this rank's accumulator, it is the first. Return false if a frame is invalid;
 * the engine is then marked. */
static bool find_sources(struct trib_engine *e, struct trib_run *run,
                         const struct trib_task *t, const struct short_chunk *k)
{
    const struct trib_contrib *m = &run->program.contribs[t->contrib];
    bool mine = true;
    int n = 0;

    if (!(t->flags & TRIB_TASK_INPUT)) {
        run->short_path->sources[n++] = trib_run_acc(run, &k->chunk);
        mine = false;
    }
    for (uint32_t i = 0; i < t->n_contribs; i++) {
        struct trib_link *l = run->short_path->links[m[i].neighbor];
        struct trib_entry *entry = &l->seen[m[i].lane];
        if (mine && l->peer > e->rank) {
            run->short_path->sources[n++] = trib_run_input(run, &k->chunk);
            mine = false;
        }
        if (is_wrong(e, run, l, entry, k))
            return false;
        const uint8_t *from = elements_of(e, l, m[i].lane, entry, k);
        if (!from) {
            trib_engine_protocol(e, l->peer, "an invalid contribution");
            return false;
        }
        run->short_path->sources[n++] = from;
    }
    if (mine)
        run->short_path->sources[n] = trib_run_input(run, &k->chunk);
    return true;
}

static bool reduce_chunk(struct trib_engine *e, struct trib_run *run,
                         struct trib_task *t, const struct short_chunk *k)
{
    const struct trib_contrib *m = &run->program.contribs[t->contrib];
    uint32_t *arrived = &run->short_path->arrived[t - run->program.tasks];

    for (; *arrived < t->n_contribs; ++*arrived)
        if (!due(e, run, m[*arrived].neighbor, m[*arrived].lane, m[*arrived].ordinal))
            return false;
    if (!find_sources(e, run, t, k))
        return false;
    trib_trace_now(&e->trace, TRIB_TRACE_REDUCE_BEGIN, -1, k->chunk.index, k->chunk.n);
    if (k->bytes)
        sum(e, run, t, k);
    trib_trace_now(&e->trace, TRIB_TRACE_REDUCE_END, -1, k->chunk.index, k->chunk.n);
    e->stats.sums++;
    for (uint32_t i = 0; i < t->n_contribs; i++)
        take(e, run, run->short_path->links[m[i].neighbor], m[i].lane, k);
    return true;
}

static bool copy_chunk_in(struct trib_engine *e, struct trib_run *run,
                          struct trib_task *t, const struct short_chunk *k)
{
    struct trib_link *l = run->short_path->links[t->neighbor];
    struct trib_entry *entry = due(e, run, t->neighbor, t->lane, t->ordinal);

    if (!entry || is_wrong(e, run, l, entry, k))
        return false;
    const uint8_t *from = elements_of(e, l, t->lane, entry, k);
    if (!from) {
        trib_engine_protocol(e, l->peer, "an invalid result");
        return false;
    }
    trib_trace_now(&e->trace, TRIB_TRACE_DECODE_BEGIN, l->peer, k->chunk.index,
                   k->chunk.n);
    if (k->bytes)
        memcpy(trib_run_acc(run, &k->chunk), from, k->bytes);
    trib_trace_now(&e->trace, TRIB_TRACE_DECODE_END, l->peer, k->chunk.index,
                   k->chunk.n);
    e->stats.copied_bytes += k->bytes;
    take(e, run, l, t->lane, k);
    return true;
}

static bool run_task(struct trib_engine *e, struct trib_run *run, struct trib_task *t)
{
    const struct short_chunk *k = &run->short_path->chunks[t->chunk];

    switch ((enum trib_task_kind)t->kind) {
    case TRIB_TASK_SEND:
        return send_chunk(e, run, t, k);
    case TRIB_TASK_REDUCE:
        return reduce_chunk(e, run, t, k);
    case TRIB_TASK_COPY_IN:
        return copy_chunk_in(e, run, t, k);
    case TRIB_TASK_COPY:
        trib_raw_copy(e, run, &k->chunk);
        return true;
    }
    return false;
}

bool trib_short_pass(struct trib_engine *e, struct trib_run *run)
{
    struct trib_short_path *s = run->short_path;
    struct trib_task *tasks = run->program.tasks;
    bool moved = false;

    if (s->billboard)
        return trib_billboard_pass(e, run, s->billboard);
    for (uint32_t i = s->first; i < run->program.n_tasks; i++) {
        struct trib_task *t = &tasks[i];
        if (t->done || (t->dep != TRIB_STEP_NO_DEP && !tasks[t->dep].done))
            continue;
        if (!run_task(e, run, t)) {
            if (e->failed)
                break;
            continue;
        }
        moved = true;
        t->done = 1;
        run->now.remaining--;
        s->first += i == s->first;
    }
    return moved;
}

/* Return true if a due frame has not arrived and its sender's core is unknown, or was
 * this core at its previous frame. */
static bool waits_beside(struct trib_engine *e, const struct trib_run *run,
                         uint16_t neighbor, int lane, uint32_t ordinal)
{
    const struct trib_link *l = run->short_path->links[neighbor];

    return (l->core == e->core || !l->core) && !due(e, run, neighbor, lane, ordinal);
}

bool trib_short_awaits_core(struct trib_engine *e, const struct trib_run *run)
{
    const struct trib_short_path *s = run->short_path;

    e->core = this_core();
    if (s->billboard)
        return trib_billboard_awaits_core(e, s->billboard);
    for (uint32_t i = s->first; i < run->program.n_tasks; i++) {
        const struct trib_task *t = &run->program.tasks[i];
        if (t->done)
            continue;
        if (t->kind == TRIB_TASK_COPY_IN &&
            waits_beside(e, run, t->neighbor, t->lane, t->ordinal))
            return true;
        for (uint32_t k = s->arrived[i]; k < t->n_contribs; k++) {
            const struct trib_contrib *m = &run->program.contribs[t->contrib + k];
            if (waits_beside(e, run, m->neighbor, m->lane, m->ordinal))
                return true;
        }
    }
    return false;
}

bool trib_short_awaits(const struct trib_engine *e, const struct trib_run *run,
                       int *peer_out)
{
    if (!run->short_path || !run->short_path->billboard)
        return false;
    *peer_out = trib_billboard_awaits(e, run->short_path->billboard, 0);
    return *peer_out >= 0;
}

void trib_short_check(struct trib_engine *e)
{
    const struct trib_run *run = e->head;

    if (run && !e->failed)
        trib_billboard_check(e, run->short_path ? run->short_path->billboard : NULL);
}
