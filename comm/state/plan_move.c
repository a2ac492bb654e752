/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recreate a plan in another communicator and continue from its state.
 *
 * All ranks exchange the descriptions of their old plans. So they create the same plan
 * or none, and a rank without an old plan learns what to create. Per-rank values (scale
 * factor, timeout) stay with their rank.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <tributary/elastic.h>

#include "comm/auto/plan_auto.h"
#include "comm/calls/named_plans.h"
#include "comm/calls/plan_create.h"
#include "comm/core/communicator.h"
#include "comm/core/gate.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/plan_make.h"
#include "comm/plan/plan_scale.h"
#include "comm/state/offers.h"
#include "comm/state/plan_state.h"

/* The part of a description that is equal on all ranks. */
struct description {
    uint64_t count, chunk, seed;
    double parameter;
    int32_t coll, dtype, op, root, feed, weighted, scaled;
    uint32_t given; /* bit i: string i is not NULL */
    char texts[TRIB_ASKED_TEXTS][TRIB_CONFIG_TEXT_BYTES];
};

struct mover {
    struct trib_comm *comm; /* of the new plan */
    struct trib_plan *from; /* NULL: this rank has no old plan */
    const void *send; /* buffers of the new plan; NULL: none */
    void *recv;
    uint64_t steps;
    const char *call; /* for error messages */
};

/* A message to all ranks. */
struct plan_message {
    struct trib_offer offer;
    uint32_t rank; /* in the old plan's communicator */
    int32_t timeout_ms;
    double prescale, postscale; /* current values */
    struct description plan;
};

/* ---- local offer ----------------------------------------------------------------- */

static trib_status_t check_from(const struct mover *c)
{
    const struct trib_plan *from = c->from;
    const trib_status_t st = trib_comm_ours(from->comm, c->call);

    if (st != TRIB_OK)
        return trib_comm_fail(c->comm, st, "%s", trib_last_error(from->comm));
    if (!from->asked)
        return trib_comm_fail(c->comm, TRIB_ERR_UNSUPPORTED,
                              "%s: plans of messages, neighbors and pairs have no "
                              "state, and the ranks they name may have changed: create "
                              "them again",
                              c->call);
    if (from->asked->has_blocks)
        return trib_comm_fail(
            c->comm, TRIB_ERR_UNSUPPORTED,
            "%s: the counts and offsets of %s refer to the ranks of the old "
            "communicator: create the plan with trib_plan_create and counts of the %d "
            "current ranks; it has no other state",
            c->call, trib_coll_name(from->asked->coll), c->comm->engine.size);
    if (trib_plan_auto_holds(from))
        return trib_comm_fail(c->comm, TRIB_ERR_UNSUPPORTED,
                              "%s: codec auto of the old plan may keep a residual, "
                              "which cannot be moved: name the codec alone, or create "
                              "the plan again",
                              c->call);
    return from->comm == c->comm
               ? trib_comm_fail(c->comm, TRIB_ERR_INVALID,
                                "%s: the plan already belongs to this communicator",
                                c->call)
               : TRIB_OK;
}

static void describe(const struct trib_plan *from, struct plan_message *t)
{
    const trib_desc_t *d = &from->asked->desc;
    const char *texts[TRIB_ASKED_TEXTS];

    t->offer.gives = 1;
    t->rank = (uint32_t)from->comm->engine.rank;
    t->timeout_ms = d->timeout_ms;
    trib_plan_scale_get(from, &t->prescale, &t->postscale);
    t->plan.count = d->count;
    t->plan.chunk = d->chunk;
    t->plan.seed = d->seed;
    t->plan.parameter = d->parameter;
    t->plan.coll = from->asked->coll;
    t->plan.dtype = d->dtype;
    t->plan.op = d->op;
    t->plan.root = trib_coll_has_root(from->asked->coll) ? d->root : 0;
    t->plan.feed = d->feed;
    t->plan.weighted = d->weighted != 0;
    t->plan.scaled = trib_plan_scale_wanted(d);
    trib_asked_list_texts(d, texts);
    for (int i = 0; i < TRIB_ASKED_TEXTS; i++) {
        assert(!texts[i] || strlen(texts[i]) < sizeof(t->plan.texts[i]));
        t->plan.given |= (uint32_t)(texts[i] != NULL) << i;
        snprintf(t->plan.texts[i], sizeof(t->plan.texts[i]), "%s",
                 texts[i] ? texts[i] : "");
    }
}

static trib_status_t prepare(const struct mover *c, struct plan_message *mine)
{
    if (!c->from)
        return TRIB_OK;
    const trib_status_t st = check_from(c);

    if (st == TRIB_OK)
        describe(c->from, mine);
    return st;
}

/* ---- common decision ------------------------------------------------------------- */

static trib_status_t compare(const struct mover *c, const struct plan_message *all,
                             int first)
{
    const struct description *a = &all[first].plan;

    for (int r = 0; r < c->comm->engine.size; r++) {
        const struct description *b = &all[r].plan;
        if (all[r].offer.gives && memcmp(a, b, sizeof(*a)) != 0)
            return trib_comm_fail(
                c->comm, TRIB_ERR_INVALID,
                "%s: the old plans of rank %d (%s of %zu %s) and of "
                "rank %d (%s of %zu %s) differ",
                c->call, first, trib_coll_name((trib_coll_t)a->coll), (size_t)a->count,
                trib_dtype_name((trib_dtype_t)a->dtype), r,
                trib_coll_name((trib_coll_t)b->coll), (size_t)b->count,
                trib_dtype_name((trib_dtype_t)b->dtype));
    }
    return TRIB_OK;
}

/* Return the old root's rank in this communicator. */
static trib_status_t find_root(const struct mover *c, const struct plan_message *all,
                               const struct description *plan, int *root_out)
{
    *root_out = 0;
    if (!trib_coll_has_root((trib_coll_t)plan->coll))
        return TRIB_OK;
    for (int r = 0; r < c->comm->engine.size; r++) {
        if (!all[r].offer.gives || all[r].rank != (uint32_t)plan->root)
            continue;
        *root_out = r;
        return TRIB_OK;
    }
    return trib_comm_fail(c->comm, TRIB_ERR_INVALID,
                          "%s: rank %d, the root of the old %s, is not among these "
                          "ranks: create the plan with another root with "
                          "trib_plan_create, and call trib_plan_state_move",
                          c->call, plan->root, trib_coll_name((trib_coll_t)plan->coll));
}

static trib_status_t make(const struct mover *c, const struct plan_message *all,
                          int first, struct trib_plan **plan_out)
{
    const struct plan_message *mine = &all[c->comm->engine.rank];
    const struct description *plan = &all[first].plan;
    const char *texts[TRIB_ASKED_TEXTS];
    trib_desc_t d = TRIB_DESC_INIT;

    d.send = c->send;
    d.recv = c->recv;
    d.count = (size_t)plan->count;
    d.chunk = (size_t)plan->chunk;
    d.seed = plan->seed;
    d.parameter = plan->parameter;
    d.dtype = (trib_dtype_t)plan->dtype;
    d.op = (trib_op_t)plan->op;
    d.feed = (trib_feed_t)plan->feed;
    d.weighted = plan->weighted;
    d.prescale = plan->scaled;
    d.timeout_ms = mine->offer.gives ? mine->timeout_ms : all[first].timeout_ms;
    for (int i = 0; i < TRIB_ASKED_TEXTS; i++)
        texts[i] = plan->given >> i & 1 ? plan->texts[i] : NULL;
    trib_asked_set_texts(&d, texts);
    trib_status_t st = find_root(c, all, plan, &d.root);
    if (st == TRIB_OK)
        st = trib_plan_make_asked(c->comm, (trib_coll_t)plan->coll, &d, plan_out);
    return st == TRIB_OK && plan->scaled
               ? trib_plan_set_scale(*plan_out, mine->offer.gives ? mine->prescale : 1,
                                     all[first].postscale)
               : st;
}

/* status: result of the caller's local checks, sent to all ranks. */
static trib_status_t move_by(const struct mover *c, trib_status_t status,
                             struct trib_plan **plan_out)
{
    struct plan_message mine = {.offer.status = status};
    struct trib_offers o = {
        .comm = c->comm, .call = c->call, .what = "an old one", .bytes = sizeof(mine)};

    *plan_out = NULL;
    if (status == TRIB_OK)
        mine.offer.status = prepare(c, &mine);
    trib_status_t st = trib_offers_exchange(&o, &mine);
    if (st == TRIB_OK)
        st = compare(c, o.all, o.first);
    if (st == TRIB_OK) {
        const struct trib_state_mover move = {c->comm, c->from, c->steps, c->call};
        st = make(c, o.all, o.first, plan_out);
        st = trib_plan_state_move_by(&move, st == TRIB_OK ? *plan_out : NULL, st);
    }
    free(o.all);
    if (st != TRIB_OK) {
        trib_plan_destroy(*plan_out);
        *plan_out = NULL;
    }
    return st;
}

trib_status_t trib_plan_move(trib_comm_t *comm, trib_plan_t *from, const void *send,
                             void *recv, uint64_t steps, trib_plan_t **plan_out)
{
    const struct mover c = {comm, from, send, recv, steps, "trib_plan_move"};

    if (plan_out)
        *plan_out = NULL;
    if (!comm)
        return TRIB_ERR_INVALID;
    if (!plan_out)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "%s: plan_out is NULL", c.call);
    trib_status_t st = trib_comm_ours(comm, c.call);
    if (st != TRIB_OK)
        return st;
    st = move_by(&c, TRIB_OK, plan_out);
    trib_gate_enter(comm);
    comm->n_plans += st == TRIB_OK;
    trib_gate_leave(comm);
    return st;
}

/* Check that the communicator has no vector of this name and room for one. */
static trib_status_t check_free(struct trib_comm *comm, const char *name,
                                const char *call)
{
    trib_gate_enter(comm);
    const bool taken = trib_named_plans_find(comm, name),
               room = trib_named_plans_grow(comm);
    trib_gate_leave(comm);
    if (taken)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "%s: \"%.63s\" was already summed in the new "
                              "communicator: move it first",
                              call, name);
    return room ? TRIB_OK
                : trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
}

trib_status_t trib_allreduce_named_move(trib_comm_t *comm, trib_comm_t *from,
                                        const char *name, uint64_t steps)
{
    struct mover c = {
        .comm = comm, .steps = steps, .call = "trib_allreduce_named_move"};
    struct trib_plan *plan;

    if (!comm)
        return TRIB_ERR_INVALID;
    if (!name)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "%s: name is NULL", c.call);
    trib_status_t st = trib_comm_ours(comm, c.call);
    if (st != TRIB_OK)
        return st;
    c.from = from ? trib_named_plans_find(from, name) : NULL;
    st = move_by(&c, check_free(comm, name, c.call), &plan);
    if (st != TRIB_OK)
        return st;
    trib_gate_enter(comm);
    trib_named_plans_add(comm, plan);
    trib_gate_leave(comm);
    return TRIB_OK;
}
