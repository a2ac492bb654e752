/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/core/comm_lock.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/core/progress_thread.h"
#include "comm/kinds/plan_neighbors.h"
#include "compress/vectors/vector_split.h"
#include "pipeline/run/failure.h"

static int tag_of(const struct trib_plan_neighbors *n, enum trib_neighbor_message kind)
{
    assert(kind < TRIB_NEIGHBOR_MESSAGES);
    return -1 - (n->id * TRIB_NEIGHBOR_MESSAGES + (int)kind);
}

/* ---- received parts -------------------------------------------------------------- */

/* Size and place of a part as sent. */
static size_t sent_bytes(const struct trib_plan_neighbors *n)
{
    return n->words ? trib_neighbor_words_bytes(n->words) : n->bytes;
}

static uint8_t *sent_at(const struct trib_plan_neighbors *n,
                        const struct trib_neighbor_end *e)
{
    return n->words ? e->part + (n->bytes + 63) / 64 * 64 : e->part;
}

/* Add a received part. If it does not decode, fail the plan instead. */
static void add_part(struct trib_plan_neighbors *n, const struct trib_neighbor_end *e)
{
    char text[160];

    assert(!e->gives);
    if (n->words && trib_neighbor_words_take(n->words, sent_at(n, e),
                                             (float *)(void *)e->part) != TRIB_OK) {
        snprintf(text, sizeof(text),
                 "rank %d sent a part that is not a valid encoding of codec %s",
                 e->peer, trib_neighbor_words_text(n->words));
        trib_engine_mark(&n->plan->comm->engine, TRIB_ERR_CODEC, text);
        return;
    }
    trib_vector_add(n->plan->comm->engine.kernels, n->plan->run.desc.op.dtype, n->x,
                    e->part, n->plan->run.desc.count);
    if (n->weight)
        *n->weight += e->in.weight;
    n->counts.added++;
    n->counts.weight_added += e->in.weight;
}

/* Add received parts, in the order of steps and ranks, and recycle completed steps. */
static void absorb(struct trib_plan_neighbors *n)
{
    struct trib_neighbor_step **at = &n->oldest, *before = NULL;

    while (*at) {
        struct trib_neighbor_step *s = *at;
        for (int i = 0; i < s->n_ends; i++) {
            struct trib_neighbor_end *e = &s->ends[i];
            if (e->gives || !e->part_done || !e->offer_done || e->added)
                continue;
            add_part(n, e);
            e->added = true;
        }
        if (s->pending) {
            before = s;
            at = &s->next;
            continue;
        }
        *at = s->next;
        if (n->newest == s)
            n->newest = before;
        s->next = n->idle;
        n->idle = s;
    }
    assert(!n->newest == !n->oldest);
}

/* ---- end of a start -------------------------------------------------------------- */

static bool is_active(const struct trib_plan_neighbors *n)
{
    return atomic_load_explicit(&n->plan->run.now.state, memory_order_relaxed) ==
           TRIB_RUN_ACTIVE;
}

/* Return true if all steps are done that the newest start waits for. */
static bool is_through(const struct trib_plan_neighbors *n)
{
    const uint64_t late = n->drains ? 0 : n->late;

    for (const struct trib_neighbor_step *s = n->oldest; s; s = s->next)
        if (s->pending && s->number + late <= n->counts.steps)
            return false;
    return true;
}

static void end_start(struct trib_plan_neighbors *n)
{
    if (n->status == TRIB_OK) /* unless the last message has failed it */
        n->status = (trib_status_t)n->plan->comm->engine.failed;
    if (n->status == TRIB_OK) {
        absorb(n);
        n->undrained = n->undrained && !n->drains;
        assert(!n->drains || !n->oldest);
    }
    n->plan->run.now.status = n->status;
    atomic_store_explicit(&n->plan->run.now.state, TRIB_RUN_DONE, memory_order_release);
}

/* Report that rank a has an edge to or from rank b, and b lacks its end. */
static void misfit(struct trib_plan_neighbors *n, uint64_t step, int a, int b,
                   bool gives)
{
    char text[300];

    snprintf(text, sizeof(text),
             "ranks disagree on the graph of step %" PRIu64 " of a neighbour plan: "
             "rank %d has rank %d in `%s`, and rank %d does not have rank %d in `%s`",
             step, a, b, gives ? "to" : "from", b, a, gives ? "from" : "to");
    trib_engine_mark(&n->plan->comm->engine, TRIB_ERR_MISMATCH, text);
}

static struct trib_neighbor_end *end_of(struct trib_p2p_request *r, int kind)
{
    char *requests = (char *)(r - kind);

    assert(kind >= 0 && kind < TRIB_NEIGHBOR_MESSAGES);
    return (struct trib_neighbor_end *)(void *)(requests -
                                                offsetof(struct trib_neighbor_end,
                                                         requests));
}

static void other_codec(struct trib_plan_neighbors *n, int peer)
{
    char text[160];

    snprintf(text, sizeof(text),
             "ranks disagree on the codec of a neighbour plan: rank %d does not have "
             "%s, the codec of rank %d",
             peer, n->words ? trib_neighbor_words_text(n->words) : "none",
             n->plan->comm->engine.rank);
    trib_engine_mark(&n->plan->comm->engine, TRIB_ERR_MISMATCH, text);
}

/* Completion of a message of an edge. The message must belong to this step: a peer that
 * has the edge sends nothing else. */
static void message_done(struct trib_engine *e, struct trib_p2p_request *r,
                         trib_status_t st)
{
    struct trib_neighbor_step *s = r->owner;
    struct trib_plan_neighbors *n = s->of;
    const int kind = tag_of(n, TRIB_NEIGHBOR_PART) - r->tag;
    struct trib_neighbor_end *end = end_of(r, kind);

    assert(s->pending > 0);
    s->pending--;
    if (st != TRIB_OK)
        n->status = st;
    if (st == TRIB_OK && !r->sends && kind != TRIB_NEIGHBOR_PART) {
        const struct trib_neighbor_note *in =
            (const struct trib_neighbor_note *)(const void *)r->buffer;
        if (in->codec != trib_neighbor_words_digest(n->words))
            other_codec(n, r->peer);
        if (in->step > s->number)
            misfit(n, s->number, e->rank, r->peer, kind == TRIB_NEIGHBOR_DEMAND);
        if (in->step < s->number)
            misfit(n, in->step, r->peer, e->rank, kind == TRIB_NEIGHBOR_OFFER);
    }
    end->part_done |= st == TRIB_OK && kind == TRIB_NEIGHBOR_PART;
    end->offer_done |= st == TRIB_OK && kind == TRIB_NEIGHBOR_OFFER;
    if (is_active(n) && is_through(n))
        end_start(n);
}

/* Handle an offer or demand that matches no posted receive. */
static void on_early(void *arg, int peer, const struct trib_p2p_early *early)
{
    struct trib_comm *comm = arg;
    const int number = -1 - early->tag, kind = number % TRIB_NEIGHBOR_MESSAGES;
    struct trib_plan_neighbors *n = comm->neighbors;
    struct trib_neighbor_note note;

    while (n && n->id != number / TRIB_NEIGHBOR_MESSAGES)
        n = n->next;
    if (!n || kind == TRIB_NEIGHBOR_PART || !early->eager ||
        early->count * trib_dtype_size((trib_dtype_t)early->dtype) != sizeof(note))
        return;
    memcpy(&note, early->payload, sizeof(note));
    if (note.step <= n->counts.steps)
        misfit(n, note.step, peer, comm->engine.rank, kind == TRIB_NEIGHBOR_OFFER);
}

/* ---- begin of a step ------------------------------------------------------------- */

/* Allocate a part's memory. A long part gets memory that peers can read by loads, if
 * enough is available. */
static bool make_part(struct trib_plan_neighbors *n, struct trib_neighbor_end *e)
{
    struct trib_comm *comm = n->plan->comm;
    const size_t bytes =
        n->words ? (n->bytes + 63) / 64 * 64 + sent_bytes(n) : n->bytes;
    void *shared = NULL;

    if (sent_bytes(n) > TRIB_MESSAGE_EAGER) {
        trib_comm_lock(comm);
        if (comm->engine.all_mapped)
            (void)trib_memory_alloc(&comm->engine.memories, bytes, &shared);
        trib_error_clear(&comm->cause);
        trib_comm_unlock(comm);
    }
    e->shared = shared != NULL;
    e->part = shared ? shared : malloc(bytes + 1);
    return e->part != NULL;
}

static void free_part(struct trib_plan_neighbors *n, struct trib_neighbor_end *e)
{
    struct trib_comm *comm = n->plan->comm;

    if (!e->shared) {
        free(e->part);
        return;
    }
    if (trib_comm_in_child(comm)) /* it belongs to the parent */
        return;
    trib_comm_lock(comm);
    (void)trib_memory_remove(&comm->engine.memories, e->part, true,
                             comm->engine.failed != TRIB_OK);
    trib_comm_unlock(comm);
}

trib_status_t trib_neighbor_step_prepare(struct trib_plan_neighbors *n, int ends)
{
    struct trib_neighbor_step *s = n->prepared ? n->prepared : n->idle;

    if (!s)
        s = calloc(1, sizeof(*s));
    if (!s)
        return trib_comm_fail(n->plan->comm, TRIB_ERR_NO_MEMORY,
                              "no memory for a step");
    if (s == n->idle)
        n->idle = s->next;
    s->of = n;
    s->next = NULL;
    n->prepared = s;
    while (s->room < ends) {
        const size_t room = (size_t)s->room + 1;
        struct trib_neighbor_end *ends_more = realloc(s->ends, room * sizeof(*s->ends));
        s->ends = ends_more ? ends_more : s->ends;
        struct trib_vector_part *given_more =
            realloc(s->given, room * sizeof(*s->given));
        s->given = given_more ? given_more : s->given;
        if (!ends_more || !given_more || !make_part(n, &s->ends[s->room]))
            return trib_comm_fail(n->plan->comm, TRIB_ERR_NO_MEMORY,
                                  "no memory for a part of %zu bytes", n->bytes);
        s->room++;
    }
    return TRIB_OK;
}

static void post(struct trib_neighbor_step *s, struct trib_neighbor_end *e,
                 enum trib_neighbor_message kind, bool sends)
{
    struct trib_plan_neighbors *n = s->of;
    const bool is_part = kind == TRIB_NEIGHBOR_PART;
    struct trib_p2p_request *r = &e->requests[kind];

    *r = (struct trib_p2p_request){
        .sends = sends,
        .peer = e->peer,
        .tag = tag_of(n, kind),
        .dtype = !is_part   ? TRIB_U64
                 : n->words ? TRIB_U8
                            : n->plan->run.desc.op.dtype,
        .count = !is_part   ? sizeof(e->out) / 8
                 : n->words ? sent_bytes(n)
                            : n->plan->run.desc.count,
        .bytes = is_part ? sent_bytes(n) : sizeof(e->out),
        .then = message_done,
        .owner = s,
        .buffer = is_part ? sent_at(n, e) : (uint8_t *)(sends ? &e->out : &e->in)};
    trib_p2p_start(&n->plan->comm->engine, r);
}

/* Subtract the parts from the vector: rest and parts add up to the old vector. */
static void take_out(struct trib_plan_neighbors *n, struct trib_neighbor_step *s)
{
    struct trib_neighbor_end *ends = s->ends;
    double rest = n->weight ? *n->weight : 0;
    int gives = 0;

    for (; gives < s->n_ends && ends[gives].gives; gives++) {
        ends[gives].out.weight = n->weight ? ends[gives].share * *n->weight : 0;
        rest -= ends[gives].out.weight;
    }
    if (n->weight)
        *n->weight = rest;
    for (int k = 0; k < gives; k++)
        s->given[k] = (struct trib_vector_part){ends[k].part, ends[k].share};
    trib_vector_split(n->plan->comm->engine.kernels, n->plan->run.desc.op.dtype, n->x,
                      n->plan->run.desc.count, s->given, gives);
    for (int k = 0; k < gives && n->words; k++)
        trib_neighbor_words_give(n->words, (uint32_t)ends[k].peer,
                                 (float *)(void *)ends[k].part, (float *)(void *)n->x,
                                 sent_at(n, &ends[k]));
}

static void append(struct trib_plan_neighbors *n)
{
    struct trib_neighbor_step *s = n->prepared;

    n->prepared = NULL;
    s->number = ++n->counts.steps;
    s->pending = (uint32_t)s->n_ends * TRIB_NEIGHBOR_MESSAGES;
    if (n->newest)
        n->newest->next = s;
    else
        n->oldest = s;
    n->newest = s;
}

/* The caller holds the lock. */
static void launch(struct trib_plan_neighbors *n)
{
    struct trib_engine *e = &n->plan->comm->engine;
    struct trib_neighbor_step *s = n->prepared;

    assert(!is_active(n) && s->n_ends <= s->room);
    n->status = TRIB_OK;
    append(n);
    for (int i = 0; i < s->n_ends; i++) {
        struct trib_neighbor_end *end = &s->ends[i];
        end->out.step = s->number;
        end->out.codec = trib_neighbor_words_digest(n->words);
        n->counts.given += end->gives;
        if (n->words && end->gives) {
            e->stats.input_bytes += sent_bytes(n);
            e->stats.input_dense_bytes += n->bytes;
        }
        n->counts.weight_given += end->gives ? end->out.weight : 0;
        post(s, end, TRIB_NEIGHBOR_OFFER, end->gives);
        post(s, end, TRIB_NEIGHBOR_DEMAND, !end->gives);
        post(s, end, TRIB_NEIGHBOR_PART, end->gives);
    }
    n->undrained |= n->late && s->n_ends;
    trib_p2p_watch(e, on_early, n->plan->comm);
    atomic_store_explicit(&n->plan->run.now.state, TRIB_RUN_ACTIVE,
                          memory_order_relaxed);
    if (is_through(n))
        end_start(n);
    if (e->failed)
        (void)trib_engine_end(e);
}

trib_status_t trib_neighbor_step_begin(struct trib_plan *plan, const void *send,
                                       void *recv)
{
    struct trib_plan_neighbors *n = trib_plan_neighbors_of(plan);
    struct trib_comm *comm = plan->comm;
    trib_status_t st;

    (void)recv;
    if (send != n)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "this is a neighbour plan: start it with "
                              "trib_plan_start_neighbors");
    assert(n->prepared);
    trib_comm_lock(comm);
    st = trib_progress_thread_start(comm);
    if (st == TRIB_OK)
        absorb(n); /* before the parts are split off, so they get their share of it */
    trib_comm_unlock(comm);
    if (st != TRIB_OK)
        return st;
    take_out(n, n->prepared);
    trib_comm_lock(comm);
    launch(n);
    st = trib_progress_thread_start(comm); /* wakes the running thread */
    trib_engine_awake(&comm->engine);
    (void)trib_engine_progress(&comm->engine);
    trib_comm_unlock(comm);
    return st;
}

/* ---- parts in flight ------------------------------------------------------------- */

void trib_neighbor_steps_count(const struct trib_plan_neighbors *n,
                               trib_in_flight_t *out)
{
    *out = n->counts;
    for (const struct trib_neighbor_step *s = n->oldest; s; s = s->next) {
        for (int i = 0; i < s->n_ends; i++) {
            const struct trib_neighbor_end *e = &s->ends[i];
            const bool is_here = !e->gives && e->part_done && e->offer_done;
            out->unsent += e->gives && !e->part_done;
            out->awaited += !e->gives && !is_here;
            out->arrived += is_here && !e->added;
        }
    }
}

/* Return TRIB_OK if the plan can be freed; else TRIB_ERR_BUSY with a message. */
static trib_status_t release(struct trib_plan *plan)
{
    const struct trib_plan_neighbors *n = trib_plan_neighbors_of(plan);
    struct trib_comm *comm = plan->comm;
    trib_in_flight_t counts;

    trib_comm_lock(comm);
    const bool is_over = comm->engine.failed || !n->undrained;
    if (comm->engine.failed)
        (void)trib_engine_end(&comm->engine);
    trib_neighbor_steps_count(n, &counts);
    trib_comm_unlock(comm);
    if (is_over)
        return TRIB_OK;
    return trib_comm_fail(comm, TRIB_ERR_BUSY,
                          "parts of this plan may be in flight (%" PRIu64 " awaited "
                          "here, %" PRIu64 " received and not added): call "
                          "trib_plan_start_drain on all ranks and wait for it before "
                          "trib_plan_free",
                          counts.awaited, counts.arrived);
}

const struct trib_plan_kind trib_plan_neighbors_kind = {.name = "neighbors",
                                                        .release = release};

void trib_neighbor_steps_free(struct trib_plan_neighbors *n)
{
    struct trib_neighbor_step *const lists[] = {n->oldest, n->idle, n->prepared};

    for (size_t k = 0; k < sizeof(lists) / sizeof(*lists); k++) {
        for (struct trib_neighbor_step *s = lists[k], *next; s; s = next) {
            next = s->next;
            for (int i = 0; i < s->room; i++)
                free_part(n, &s->ends[i]);
            free(s->ends);
            free(s->given);
            free(s);
        }
    }
    n->oldest = n->newest = n->idle = n->prepared = NULL;
}
