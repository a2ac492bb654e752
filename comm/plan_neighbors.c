/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steps with neighbours: tributary/neighbors.h.
 *
 * Each edge of a step is three messages. Its sender gives an offer, which has the
 * number of the step and the weight, and the part of the vector; its receiver gives a
 * demand, which has the number of the step. So each end hears of the other one: an
 * offer or a demand of a step that has begun here, and for which nothing is posted, is
 * an edge that one end alone has.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tributary/neighbors.h>

#include "base/sized.h"
#include "comm/plan_message.h"
#include "pipeline/engine/failure.h"

enum kind {
    PART,
    OFFER,
    DEMAND,
    KINDS,
};

#define SLACK 1e-9 /* by which rounding may take the sum of shares above 1 */

/* The elements of an offer and of a demand. */
struct note {
    uint64_t step;
    double weight; /* of an offer */
};

/* Each of the two ranks of an edge has one of its ends. */
struct end {
    int peer;
    bool gives; /* this rank gives the part */
    double share;
    struct note out, in;
    uint8_t *part; /* [bytes] */
    struct trib_p2p_request requests[KINDS];
};

struct trib_plan_neighbors {
    struct trib_plan_ops ops; /* those of other plans, but for a few */
    struct trib_plan *plan;
    struct trib_plan_neighbors *next; /* of the communicator */
    int id;      /* the same on all ranks */
    bool *peers; /* [ranks] of which graphs may be */
    size_t bytes;
    uint64_t step;    /* number of the newest start, from 1 */
    uint32_t pending; /* messages of it */
    trib_status_t status;
    struct end *ends; /* [n_ends] of the newest start, those that give first */
    int n_ends, room;
    uint8_t *x;
    double *weight;
};

static int tag_of(const struct trib_plan_neighbors *n, enum kind kind)
{
    assert(kind < KINDS);
    return -1 - (n->id * KINDS + (int)kind);
}

/* ---- the end of a step ----------------------------------------------------------- */

static void add_part(const struct trib_plan_neighbors *n, const struct end *e)
{
    const size_t count = n->plan->run.desc.count;

    assert(!e->gives && e->in.step == n->step);
    if (n->plan->run.desc.op.dtype == TRIB_F64) {
        double *x = (double *)(void *)n->x;
        const double *part = (const double *)(const void *)e->part;
        for (size_t i = 0; i < count; i++)
            x[i] += part[i];
    } else {
        float *x = (float *)(void *)n->x;
        const float *part = (const float *)(const void *)e->part;
        for (size_t i = 0; i < count; i++)
            x[i] += part[i];
    }
    if (n->weight)
        *n->weight += e->in.weight;
}

static void end_step(struct trib_plan_neighbors *n)
{
    assert(n->pending == 0);
    if (n->status == TRIB_OK) /* unless the last message has failed it */
        n->status = (trib_status_t)n->plan->comm->engine.failed;
    for (int i = 0; i < n->n_ends && n->status == TRIB_OK; i++)
        if (!n->ends[i].gives)
            add_part(n, &n->ends[i]);
    n->plan->run.now.status = n->status;
    atomic_store_explicit(&n->plan->run.now.state, TRIB_RUN_DONE, memory_order_release);
}

/* Rank a has an edge to or from rank b, which has none. */
static void misfit(struct trib_plan_neighbors *n, uint64_t step, int a, int b,
                   bool gives)
{
    char text[300];

    snprintf(text, sizeof(text),
             "ranks disagree on the graph of step %" PRIu64 " of a plan of neighbours: "
             "rank %d has rank %d in `%s`, and rank %d does not have rank %d in `%s`",
             step, a, b, gives ? "to" : "from", b, a, gives ? "from" : "to");
    trib_engine_mark(&n->plan->comm->engine, TRIB_ERR_MISMATCH, text);
}

/* A message of an edge is through. What came must be of this step: the peer gives none
 * of it otherwise. */
static void message_done(struct trib_engine *e, struct trib_p2p_request *r,
                         trib_status_t st)
{
    struct trib_plan_neighbors *n = r->owner;
    const bool is_note = !r->sends && r->tag != tag_of(n, PART);

    assert(n->pending > 0);
    if (st != TRIB_OK)
        n->status = st;
    if (st == TRIB_OK && is_note) {
        const struct note *in = (const struct note *)(const void *)r->buffer;
        if (in->step > n->step)
            misfit(n, n->step, e->rank, r->peer, r->tag == tag_of(n, DEMAND));
        if (in->step < n->step)
            misfit(n, in->step, r->peer, e->rank, r->tag == tag_of(n, OFFER));
    }
    if (--n->pending == 0)
        end_step(n);
}

/* An offer or a demand for which nothing is posted. */
static void look_at_early(void *arg, int peer, const struct trib_p2p_early *early)
{
    struct trib_comm *comm = arg;
    const int number = -1 - early->tag;
    struct trib_plan_neighbors *n = comm->neighbors;
    struct note note;

    while (n && n->id != number / KINDS)
        n = n->next;
    if (!n || number % KINDS == PART || !early->eager ||
        early->count * trib_dtype_size((trib_dtype_t)early->dtype) != sizeof(note))
        return;
    memcpy(&note, early->payload, sizeof(note));
    if (note.step <= n->step)
        misfit(n, note.step, peer, comm->engine.rank, number % KINDS == OFFER);
}

/* ---- the begin of a step --------------------------------------------------------- */

static void post(struct trib_plan_neighbors *n, struct end *e, enum kind kind,
                 bool sends)
{
    const bool is_part = kind == PART;
    struct trib_p2p_request *r = &e->requests[kind];

    *r = (struct trib_p2p_request){
        .sends = sends,
        .peer = e->peer,
        .tag = tag_of(n, kind),
        .dtype = is_part ? n->plan->run.desc.op.dtype : TRIB_U64,
        .count = is_part ? n->plan->run.desc.count : sizeof(struct note) / 8,
        .bytes = is_part ? n->bytes : sizeof(struct note),
        .then = message_done,
        .owner = n,
        .buffer = is_part ? e->part : (uint8_t *)(sends ? &e->out : &e->in)};
    trib_p2p_start(&n->plan->comm->engine, r);
}

/* Take the parts out of the vector: what is left, and the parts, are in all what it
 * was. */
static void take_out(struct trib_plan_neighbors *n)
{
    const bool is_double = n->plan->run.desc.op.dtype == TRIB_F64;
    assert(is_double || n->plan->run.desc.op.dtype == TRIB_F32);
    double rest = n->weight ? *n->weight : 0;

    for (int k = 0; k < n->n_ends && n->ends[k].gives; k++) {
        n->ends[k].out.weight = n->weight ? n->ends[k].share * *n->weight : 0;
        rest -= n->ends[k].out.weight;
    }
    if (n->weight)
        *n->weight = rest;
    for (size_t i = 0; i < n->plan->run.desc.count; i++) {
        double *d = (double *)(void *)n->x + i;
        float *f = (float *)(void *)n->x + i;
        double left = is_double ? *d : (double)*f;
        const double whole = left;
        for (int k = 0; k < n->n_ends && n->ends[k].gives; k++) {
            const double part = n->ends[k].share * whole;
            if (is_double)
                left -= ((double *)(void *)n->ends[k].part)[i] = part;
            else
                left -= (double)(((float *)(void *)n->ends[k].part)[i] = (float)part);
        }
        if (is_double)
            *d = left;
        else
            *f = (float)left;
    }
}

/* With the lock held. */
static void launch(struct trib_plan_neighbors *n)
{
    struct trib_engine *e = &n->plan->comm->engine;

    assert(n->pending == 0 && n->n_ends <= n->room);
    n->step++;
    n->status = TRIB_OK;
    n->pending = 1 + (uint32_t)n->n_ends * KINDS; /* one until all are posted */
    atomic_store_explicit(&n->plan->run.now.state, TRIB_RUN_ACTIVE,
                          memory_order_relaxed);
    for (int i = 0; i < n->n_ends; i++) {
        struct end *end = &n->ends[i];
        end->out.step = n->step;
        post(n, end, OFFER, end->gives);
        post(n, end, DEMAND, !end->gives);
        post(n, end, PART, end->gives);
    }
    trib_p2p_watch(e, look_at_early, n->plan->comm);
    if (--n->pending == 0)
        end_step(n);
    if (e->failed)
        (void)trib_engine_end(e);
}

static trib_status_t start(struct trib_plan *plan, const void *send, void *recv)
{
    struct trib_comm *comm = plan->comm;
    trib_status_t st;

    (void)recv;
    if (send != plan->neighbors)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "the plan is of neighbours: start it with "
                              "trib_plan_start_neighbors");
    trib_comm_lock(comm);
    st = trib_progress_thread_start(comm);
    trib_comm_unlock(comm);
    if (st != TRIB_OK)
        return st;
    take_out(plan->neighbors);
    trib_comm_lock(comm);
    launch(plan->neighbors);
    st = trib_progress_thread_start(comm); /* it runs, and is woken up */
    trib_engine_awake(&comm->engine);
    (void)trib_engine_progress(&comm->engine);
    trib_comm_unlock(comm);
    return st;
}

/* ---- the graph ------------------------------------------------------------------- */

static trib_status_t check_rank(struct trib_plan_neighbors *n, int rank,
                                const char *list)
{
    struct trib_comm *comm = n->plan->comm;

    if (rank < 0 || rank >= comm->engine.ranks)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "rank %d in `%s`: the communicator has ranks 0 to %d",
                              rank, list, comm->engine.ranks - 1);
    if (rank == comm->engine.rank)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "rank %d in its own `%s`: what a rank does not give away "
                              "it keeps",
                              rank, list);
    if (!n->peers[rank])
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "rank %d in `%s` is not in trib_neighbors_desc_t.peers",
                              rank, list);
    return TRIB_OK;
}

static trib_status_t check_shares(struct trib_comm *comm, const trib_neighbors_t *g)
{
    double sum = 0;

    for (int i = 0; i < g->n_to; i++) {
        if (!(g->shares[i] > 0))
            return trib_comm_fail(comm, TRIB_ERR_INVALID,
                                  "the share of rank %d is %g: it must be above 0",
                                  g->to[i], g->shares[i]);
        sum += g->shares[i];
    }
    if (!(sum <= 1 + SLACK))
        return trib_comm_fail(
            comm, TRIB_ERR_INVALID,
            "the shares are %.17g in all: 1 at most can be given away", sum);
    return TRIB_OK;
}

static int by_rank(const void *a, const void *b)
{
    const struct end *x = a, *y = b;

    return x->gives != y->gives ? y->gives - x->gives
                                : (x->peer > y->peer) - (x->peer < y->peer);
}

/* Room for the ends of a step, and their parts. */
static trib_status_t make_room(struct trib_plan_neighbors *n, int ends)
{
    while (n->room < ends) {
        struct end *more =
            realloc(n->ends, ((size_t)n->room + 1) * sizeof(*n->ends));
        uint8_t *part = more ? malloc(n->bytes + 1) : NULL;
        n->ends = more ? more : n->ends;
        if (!part)
            return trib_comm_fail(n->plan->comm, TRIB_ERR_NO_MEMORY,
                                  "no memory for a part of %zu bytes", n->bytes);
        n->ends[n->room++].part = part;
    }
    return TRIB_OK;
}

static void set_end(struct end *e, int peer, bool gives, double share)
{
    e->peer = peer;
    e->gives = gives;
    e->share = share;
}

static trib_status_t take_graph(struct trib_plan_neighbors *n,
                                const trib_neighbors_t *g)
{
    struct trib_comm *comm = n->plan->comm;
    trib_status_t st = TRIB_OK;

    if (g->n_to < 0 || g->n_from < 0 || (g->n_to && (!g->to || !g->shares)) ||
        (g->n_from && !g->from))
        return trib_comm_fail(
            comm, TRIB_ERR_INVALID,
            "a graph of %d ranks to and %d from, and a list is NULL or "
            "has a negative length",
            g->n_to, g->n_from);
    for (int i = 0; i < g->n_to && st == TRIB_OK; i++)
        st = check_rank(n, g->to[i], "to");
    for (int i = 0; i < g->n_from && st == TRIB_OK; i++)
        st = check_rank(n, g->from[i], "from");
    if (st == TRIB_OK)
        st = check_shares(comm, g);
    if (st == TRIB_OK)
        st = make_room(n, g->n_to + g->n_from);
    if (st != TRIB_OK)
        return st;
    assert(n->room >= g->n_to + g->n_from);
    n->n_ends = g->n_to + g->n_from;
    for (int i = 0; i < g->n_to; i++)
        set_end(&n->ends[i], g->to[i], true, g->shares[i]);
    for (int i = 0; i < g->n_from; i++)
        set_end(&n->ends[g->n_to + i], g->from[i], false, 0);
    qsort(n->ends, (size_t)n->n_ends, sizeof(*n->ends), by_rank);
    for (int i = 1; i < n->n_ends; i++)
        if (by_rank(&n->ends[i - 1], &n->ends[i]) == 0)
            return trib_comm_fail(comm, TRIB_ERR_INVALID, "rank %d is twice in `%s`",
                                  n->ends[i].peer, n->ends[i].gives ? "to" : "from");
    return TRIB_OK;
}

trib_status_t trib_plan_start_neighbors(trib_plan_t *plan,
                                        const trib_neighbors_t *graph, void *x,
                                        double *weight)
{
    static const struct trib_sized kind = {
        "trib_neighbors_t", "TRIB_NEIGHBORS_INIT", sizeof(*graph),
        TRIB_SIZED_UP_TO(trib_neighbors_t, n_from)};
    trib_neighbors_t ours = TRIB_NEIGHBORS_INIT;
    struct trib_error err = {0};

    if (!plan)
        return TRIB_ERR_INVALID;
    struct trib_comm *comm = plan->comm;
    if (comm->engine.failed)
        return comm->engine.failed;
    trib_status_t st = trib_plan_idle(plan, "trib_plan_start_neighbors");
    if (st != TRIB_OK)
        return st;
    struct trib_plan_neighbors *n = plan->neighbors;
    if (!n)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "trib_plan_start_neighbors is for plans that "
                              "trib_plan_neighbors has made");
    if (!graph || (!x && n->bytes))
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "a step with neighbours: %s is NULL",
                              graph ? "x" : "graph");
    if (trib_sized_take(&kind, graph, &ours, &err) != TRIB_OK)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "%s", trib_error_text(&err));
    st = take_graph(n, &ours);
    if (st != TRIB_OK)
        return st;
    n->x = x;
    n->weight = weight;
    return plan->ops->start(plan, n, NULL);
}

/* ---- the plan -------------------------------------------------------------------- */

static trib_status_t explain(const struct trib_plan *plan, char *text, size_t bytes)
{
    const struct trib_plan_neighbors *n = plan->neighbors;
    int gives = 0;

    while (gives < n->n_ends && n->ends[gives].gives)
        gives++;
    snprintf(text, bytes,
             "neighbors of %zu %s\nsteps      %" PRIu64 " so far; in the newest %d "
             "neighbours get a part, %d give one\n",
             plan->run.desc.count, trib_dtype_name(plan->run.desc.op.dtype), n->step,
             gives, n->n_ends - gives);
    return TRIB_OK;
}

static void destroy(struct trib_plan *plan)
{
    struct trib_plan_neighbors *n = plan->neighbors, **at = &plan->comm->neighbors;
    const bool shared = !trib_comm_in_child(plan->comm); /* else the lock is a copy */

    assert(n && plan->ops == &n->ops);
    if (shared)
        trib_comm_lock(plan->comm);
    while (*at && *at != n)
        at = &(*at)->next;
    if (*at)
        *at = n->next;
    if (shared)
        trib_comm_unlock(plan->comm);
    for (int i = 0; i < n->room; i++)
        free(n->ends[i].part);
    free(n->ends);
    free(n->peers);
    free(n);
    plan->neighbors = NULL;
}

static trib_status_t check_desc(struct trib_comm *comm, const trib_neighbors_desc_t *d)
{
    size_t bytes;

    if (d->dtype != TRIB_F32 && d->dtype != TRIB_F64)
        return trib_comm_fail(comm, TRIB_ERR_UNSUPPORTED,
                              "neighbours exchange parts of f32 and f64, not of %s",
                              trib_dtype_name(d->dtype));
    if (!trib_message_bytes(d->count, d->dtype, &bytes))
        return trib_comm_fail(comm, TRIB_ERR_OVERFLOW, "no memory has %zu elements",
                              d->count);
    if (d->n_peers < 0)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "n_peers is %d", d->n_peers);
    return TRIB_OK;
}

/* Connect to the ranks that graphs may name; with the lock held. */
static trib_status_t open_peers(struct trib_plan_neighbors *n)
{
    struct trib_engine *e = &n->plan->comm->engine;
    trib_status_t st = TRIB_OK;

    for (int p = 0; p < e->ranks && st == TRIB_OK; p++) {
        if (!n->peers[p] || p == e->rank)
            continue;
        st = trib_engine_reach(e, p, "trib_plan_neighbors");
        if (st == TRIB_OK)
            st = trib_p2p_open(e, p);
    }
    return st;
}

static trib_status_t fill(struct trib_plan *plan, const trib_neighbors_desc_t *d)
{
    struct trib_plan_neighbors *n = plan->neighbors;
    struct trib_comm *comm = plan->comm;
    const int size = comm->engine.ranks;

    n->plan = plan;
    n->ops = trib_plan_own_ops;
    n->ops.start = n->ops.run = start;
    n->ops.explain = explain;
    trib_plan_message_keep_nothing(&n->ops);
    n->ops.destroy = destroy;
    plan->run.desc.count = d->count;
    plan->run.desc.op.dtype = d->dtype;
    plan->run.desc.element = trib_dtype_size(d->dtype);
    n->bytes = d->count * plan->run.desc.element;
    n->peers = calloc((size_t)size, sizeof(*n->peers));
    if (!n->peers)
        return trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
    for (int i = 0; i < (d->peers ? d->n_peers : size); i++) {
        const int p = d->peers ? d->peers[i] : i;
        if (p < 0 || p >= size)
            return trib_comm_fail(comm, TRIB_ERR_INVALID,
                                  "rank %d in `peers`: the communicator has ranks 0 to "
                                  "%d",
                                  p, size - 1);
        n->peers[p] = true;
    }
    trib_comm_lock(comm);
    trib_error_clear(&comm->cause);
    const trib_status_t st = open_peers(n);
    trib_comm_unlock(comm);
    return st == TRIB_OK ? st
                         : trib_comm_fail(comm, st, "trib_plan_neighbors: %s",
                                          trib_comm_cause(comm, st));
}

trib_status_t trib_plan_neighbors(trib_comm_t *comm, const trib_neighbors_desc_t *desc,
                                  trib_plan_t **plan_out)
{
    static const struct trib_sized kind = {
        "trib_neighbors_desc_t", "TRIB_NEIGHBORS_DESC_INIT", sizeof(*desc),
        TRIB_SIZED_UP_TO(trib_neighbors_desc_t, n_peers)};
    trib_neighbors_desc_t ours = TRIB_NEIGHBORS_DESC_INIT;
    struct trib_error err = {0};

    if (plan_out)
        *plan_out = NULL;
    if (!comm)
        return TRIB_ERR_INVALID;
    if (!desc || !plan_out)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "trib_plan_neighbors: %s is NULL",
                              desc ? "plan_out" : "desc");
    trib_status_t st = trib_comm_ours(comm, "trib_plan_neighbors");
    if (st == TRIB_OK && trib_sized_take(&kind, desc, &ours, &err) != TRIB_OK)
        st = trib_comm_fail(comm, TRIB_ERR_INVALID, "%s", trib_error_text(&err));
    if (st == TRIB_OK)
        st = check_desc(comm, &ours);
    if (st != TRIB_OK)
        return st;
    struct trib_plan *plan = calloc(1, sizeof(*plan));
    struct trib_plan_neighbors *n = plan ? calloc(1, sizeof(*n)) : NULL;
    if (!n) {
        free(plan);
        return trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
    }
    plan->comm = comm;
    plan->neighbors = n;
    plan->ops = &n->ops;
    st = fill(plan, &ours);
    if (st != TRIB_OK) {
        trib_plan_destroy(plan);
        return st;
    }
    n->id = comm->n_neighbor_plans++;
    trib_comm_lock(comm);
    n->next = comm->neighbors;
    comm->neighbors = n;
    trib_comm_unlock(comm);
    comm->n_plans++;
    *plan_out = plan;
    return TRIB_OK;
}
