/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public calls of neighbour plans: tributary/neighbors.h.
 */
#include "comm/kinds/plan_neighbors.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "comm/core/comm_lock.h"
#include "comm/core/communicator.h"
#include "comm/core/gate.h"
#include "comm/core/plan_struct.h"
#include "comm/kinds/plan_message.h"
#include "comm/plan/plan_feedback.h"
#include "comm/plan/plan_make.h"

#define LIST_MOST ((size_t)INT_MAX / 2) /* ends in each direction */
#define SLACK 1e-9 /* rounding error allowed for a sum of shares of 1 */

enum { LATE_MOST = 1000 };

/* ---- graph ----------------------------------------------------------------------- */

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
                              "rank %d in its own `%s`: omit it, a rank keeps what it "
                              "does not send",
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

    for (size_t i = 0; i < g->n_to; i++) {
        if (!(g->shares[i] > 0))
            return trib_comm_fail(comm, TRIB_ERR_INVALID,
                                  "the share of rank %d is %g: it must be above 0",
                                  g->to[i], g->shares[i]);
        sum += g->shares[i];
    }
    if (!(sum <= 1 + SLACK))
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "the shares add to %.17g: at most 1 can be sent", sum);
    return TRIB_OK;
}

static int by_rank(const void *a, const void *b)
{
    const struct trib_neighbor_end *x = a, *y = b;

    return x->gives != y->gives ? y->gives - x->gives
                                : (x->peer > y->peer) - (x->peer < y->peer);
}

static void set_end(struct trib_neighbor_end *e, int peer, bool gives, double share)
{
    e->peer = peer;
    e->gives = gives;
    e->share = share;
    e->part_done = e->offer_done = e->added = false;
}

static trib_status_t take_graph(struct trib_plan_neighbors *n,
                                const trib_neighbors_t *g)
{
    struct trib_comm *comm = n->plan->comm;
    trib_status_t st = TRIB_OK;

    if (g->n_to > LIST_MOST || g->n_from > LIST_MOST ||
        (g->n_to && (!g->to || !g->shares)) || (g->n_from && !g->from))
        return trib_comm_fail(
            comm, TRIB_ERR_INVALID,
            "a graph of %zu ranks to and %zu from: a list is NULL or too long", g->n_to,
            g->n_from);
    for (size_t i = 0; i < g->n_to && st == TRIB_OK; i++)
        st = check_rank(n, g->to[i], "to");
    for (size_t i = 0; i < g->n_from && st == TRIB_OK; i++)
        st = check_rank(n, g->from[i], "from");
    if (st == TRIB_OK)
        st = check_shares(comm, g);
    if (st == TRIB_OK)
        st = trib_neighbor_step_prepare(n, (int)(g->n_to + g->n_from));
    if (st != TRIB_OK)
        return st;
    struct trib_neighbor_step *s = n->prepared;
    s->n_ends = (int)(g->n_to + g->n_from);
    assert(s->room >= s->n_ends);
    for (size_t i = 0; i < g->n_to; i++)
        set_end(&s->ends[i], g->to[i], true, g->shares[i]);
    for (size_t i = 0; i < g->n_from; i++)
        set_end(&s->ends[g->n_to + i], g->from[i], false, 0);
    if (s->n_ends > 1) /* without ends the array is NULL, which qsort does not accept */
        qsort(s->ends, (size_t)s->n_ends, sizeof(*s->ends), by_rank);
    for (int i = 1; i < s->n_ends; i++)
        if (by_rank(&s->ends[i - 1], &s->ends[i]) == 0)
            return trib_comm_fail(comm, TRIB_ERR_INVALID,
                                  "rank %d occurs twice in `%s`", s->ends[i].peer,
                                  s->ends[i].gives ? "to" : "from");
    return TRIB_OK;
}

/* Checks common to steps and drains. */
static trib_status_t may_start(trib_plan_t *plan, const void *x, const char *call)
{
    struct trib_comm *comm = plan->comm;

    if (comm->engine.failed)
        return comm->engine.failed;
    const trib_status_t st = trib_plan_idle(plan, call);
    if (st != TRIB_OK)
        return st;
    if (!trib_plan_neighbors_of(plan))
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "%s is for plans created by trib_plan_neighbors", call);
    if (!x && trib_plan_neighbors_of(plan)->bytes)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "%s: x is NULL", call);
    return TRIB_OK;
}

static trib_status_t begin(trib_plan_t *plan, bool drains, void *x, double *weight)
{
    struct trib_plan_neighbors *n = trib_plan_neighbors_of(plan);

    n->drains = drains;
    n->x = x;
    n->weight = weight;
    return plan->ops->start(plan, n, NULL);
}

trib_status_t trib_plan_start_neighbors(trib_plan_t *plan,
                                        const trib_neighbors_t *graph, void *x,
                                        double *weight)
{
    static const struct trib_sized kind = {"trib_neighbors_t", "TRIB_NEIGHBORS_INIT",
                                           sizeof(*graph),
                                           TRIB_SIZED_UP_TO(trib_neighbors_t, n_from)};
    trib_neighbors_t ours = TRIB_NEIGHBORS_INIT;
    struct trib_error err = {0};

    if (!plan)
        return TRIB_ERR_INVALID;
    trib_status_t st = may_start(plan, x, "trib_plan_start_neighbors");
    if (st != TRIB_OK)
        return st;
    if (!graph)
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                              "trib_plan_start_neighbors: graph is NULL");
    if (trib_sized_take(&kind, graph, &ours, &err) != TRIB_OK)
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID, "%s",
                              trib_error_text(&err));
    st = take_graph(trib_plan_neighbors_of(plan), &ours);
    return st == TRIB_OK ? begin(plan, false, x, weight) : st;
}

trib_status_t trib_plan_start_drain(trib_plan_t *plan, void *x, double *weight)
{
    if (!plan)
        return TRIB_ERR_INVALID;
    trib_status_t st = may_start(plan, x, "trib_plan_start_drain");
    if (st == TRIB_OK)
        st = trib_neighbor_step_prepare(trib_plan_neighbors_of(plan), 0);
    if (st != TRIB_OK)
        return st;
    trib_plan_neighbors_of(plan)->prepared->n_ends = 0;
    return begin(plan, true, x, weight);
}

trib_status_t trib_plan_in_flight(trib_plan_t *plan, trib_in_flight_t *counts)
{
    static const struct trib_sized kind = {
        "trib_in_flight_t", "TRIB_IN_FLIGHT_INIT", sizeof(*counts),
        TRIB_SIZED_UP_TO(trib_in_flight_t, weight_added)};
    trib_in_flight_t ours = TRIB_IN_FLIGHT_INIT;
    struct trib_error err = {0};

    if (!plan)
        return TRIB_ERR_INVALID;
    struct trib_comm *comm = plan->comm;
    const trib_status_t st = trib_comm_ours(comm, "trib_plan_in_flight");
    if (st != TRIB_OK)
        return st;
    if (!trib_plan_neighbors_of(plan) || !counts)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              trib_plan_neighbors_of(plan)
                                  ? "trib_plan_in_flight: counts is NULL"
                                  : "trib_plan_in_flight is for plans "
                                    "created by trib_plan_neighbors");
    if (trib_sized_fits(&kind, counts, &err) != TRIB_OK)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "%s", trib_error_text(&err));
    trib_comm_lock(comm);
    trib_neighbor_steps_count(trib_plan_neighbors_of(plan), &ours);
    trib_comm_unlock(comm);
    trib_sized_give(&kind, &ours, counts);
    return TRIB_OK;
}

/* ---- plan ------------------------------------------------------------------------ */

static trib_status_t explain(const struct trib_plan *plan, char *text, size_t bytes)
{
    const bool shared = !trib_comm_in_child(plan->comm); /* a child's lock is a copy */
    trib_in_flight_t counts;

    if (shared)
        trib_comm_lock(plan->comm);
    trib_neighbor_steps_count(trib_plan_neighbors_of(plan), &counts);
    if (shared)
        trib_comm_unlock(plan->comm);
    snprintf(text, bytes,
             "neighbors of %zu %s, codec %s\n"
             "steps      %" PRIu64 " so far; parts are up to %" PRIu64 " late\n"
             "parts      %" PRIu64 " given, %" PRIu64 " added, %" PRIu64 " awaited\n",
             plan->run.desc.count, trib_dtype_name(plan->run.desc.op.dtype),
             trib_plan_neighbors_of(plan)->words
                 ? trib_neighbor_words_text(trib_plan_neighbors_of(plan)->words)
                 : "none",
             counts.steps, trib_plan_neighbors_of(plan)->late, counts.given,
             counts.added, counts.awaited);
    return TRIB_OK;
}

static void destroy(struct trib_plan *plan)
{
    struct trib_plan_neighbors *n = plan->of_kind, **at = &plan->comm->neighbors;
    const bool shared = !trib_comm_in_child(plan->comm); /* a child's lock is a copy */

    assert(n && plan->ops);
    if (shared)
        trib_comm_lock(plan->comm);
    while (*at && *at != n)
        at = &(*at)->next;
    if (*at)
        *at = n->next;
    if (shared)
        trib_comm_unlock(plan->comm);
    trib_neighbor_steps_free(n);
    trib_neighbor_words_close(n->words);
    free(n->peers);
    free(n);
    plan->of_kind = NULL;
}

static trib_status_t check_desc(struct trib_comm *comm, const trib_neighbors_desc_t *d)
{
    size_t bytes;

    if (d->dtype != TRIB_F32 && d->dtype != TRIB_F64)
        return trib_comm_fail(comm, TRIB_ERR_UNSUPPORTED,
                              "neighbours exchange parts of f32 and f64, not of %s",
                              trib_dtype_name(d->dtype));
    if (d->codec && d->dtype != TRIB_F32)
        return trib_comm_fail(comm, TRIB_ERR_UNSUPPORTED,
                              "codec \"%s\" of neighbours' parts supports f32, not %s",
                              d->codec, trib_dtype_name(d->dtype));
    if (!trib_message_bytes(d->count, d->dtype, &bytes))
        return trib_comm_fail(comm, TRIB_ERR_OVERFLOW,
                              "%zu elements exceed the address space", d->count);
    if (d->n_peers < 0 || (d->n_peers && !d->peers))
        return trib_comm_fail(
            comm, TRIB_ERR_INVALID,
            "trib_neighbors_desc_t.n_peers is %d, it must be %s", d->n_peers,
            d->peers ? "0 or more" : "0, because peers is NULL: all ranks");
    if (d->late < 0 || d->late > LATE_MOST)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "late is %d: it must be 0 to %d; each step of lateness "
                              "needs one more copy of the parts",
                              d->late, LATE_MOST);
    if (d->late > 0 && comm->cfg.deterministic)
        return trib_comm_fail(
            comm, TRIB_ERR_UNSUPPORTED,
            "late is %d: the parts that a step adds depend on when they arrive, which "
            "TRIB_DETERMINISTIC forbids: use late 0",
            d->late);
    return TRIB_OK;
}

/* Connect to the ranks that graphs may use; with the lock held. */
static trib_status_t open_peers(struct trib_plan_neighbors *n)
{
    struct trib_engine *e = &n->plan->comm->engine;
    trib_status_t st = TRIB_OK;

    trib_engine_connect_many(e, n->peers, e->ranks);
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
    struct trib_plan_neighbors *n = trib_plan_neighbors_of(plan);
    struct trib_comm *comm = plan->comm;
    const int size = comm->engine.ranks;

    n->plan = plan;
    n->ops = trib_plan_own_ops;
    n->ops.start = n->ops.run = trib_neighbor_step_begin;
    n->ops.explain = explain;
    trib_plan_message_keep_nothing(&n->ops);
    n->ops.destroy = destroy;
    plan->run.desc.count = d->count;
    plan->run.desc.op.dtype = d->dtype;
    plan->run.desc.element = trib_dtype_size(d->dtype);
    n->bytes = d->count * plan->run.desc.element;
    n->late = (uint64_t)d->late;
    n->counts.size = sizeof(n->counts);
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
    trib_status_t st = TRIB_OK;
    if (d->codec && strcmp(d->codec, "none") != 0)
        st = trib_neighbor_words_open(comm, d->codec, d->count, &n->words);
    if (st != TRIB_OK)
        return st;
    trib_comm_lock(comm);
    trib_error_clear(&comm->cause);
    st = open_peers(n);
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
        TRIB_SIZED_UP_TO(trib_neighbors_desc_t, late)};
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
    plan->kind = &trib_plan_neighbors_kind;
    plan->of_kind = n;
    plan->ops = &n->ops;
    st = fill(plan, &ours);
    if (st != TRIB_OK) {
        trib_plan_destroy(plan);
        return st;
    }
    trib_gate_enter(comm);
    n->id = comm->n_neighbor_plans++;
    trib_comm_lock(comm);
    n->next = comm->neighbors;
    comm->neighbors = n;
    trib_comm_unlock(comm);
    comm->n_plans++;
    trib_gate_leave(comm);
    *plan_out = plan;
    return TRIB_OK;
}
