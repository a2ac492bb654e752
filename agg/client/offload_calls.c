/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables through which comm/ calls offloaded plans (comm/core/plan_ops.h), and the
 * function that attaches an offload. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agg/client/offload_gate.h"
#include "agg/client/offload_plan.h"
#include "base/text.h"
#include "comm/core/comm_lock.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/members/leave.h"
#include "comm/members/split.h"
#include "comm/plan/deterministic.h"
#include "comm/plan/plan_make.h"

enum { CONTROL_CHUNK = 4096 };

static const struct trib_plan_ops ops;

static char *copy_text(const char *text)
{
    return text ? strdup(text) : NULL;
}

static void link_plan(struct trib_offload_plan *p)
{
    struct trib_offload_plan **end = &p->offload->plans;

    while (*end)
        end = &(*end)->next;
    *end = p;
}

static void unlink_plan(struct trib_offload_plan *p)
{
    struct trib_offload_plan **at = &p->offload->plans;

    while (*at && *at != p)
        at = &(*at)->next;
    if (*at)
        *at = p->next;
}

static bool takes(const struct trib_comm *comm, trib_coll_t coll,
                  const trib_desc_t *desc, bool leaving)
{
    const char *name = desc->algorithm ? desc->algorithm : comm->cfg.algorithm;
    const struct trib_algo *algo = trib_algo_find(name);

    return coll == TRIB_ALLREDUCE && !leaving &&
           (trib_text_is_auto(name) || (algo && algo->aggregators)) &&
           trib_deterministic_hands_over(comm, coll, desc);
}

/* Copy the description with its texts, for plans that are created later. */
static trib_status_t describe(struct trib_plan *plan, trib_coll_t coll,
                              const trib_desc_t *desc)
{
    struct trib_offload_plan *p = plan->offload;

    p->absent = calloc((size_t)plan->comm->engine.ranks, sizeof(*p->absent));
    p->coll = coll;
    p->desc = *desc;
    p->pairs = plan->run.desc.pairs;
    p->most = plan->most;
    p->desc.codec = copy_text(desc->codec);
    p->desc.feedback = copy_text(desc->feedback);
    p->desc.quorum = copy_text(desc->quorum);
    p->desc.name = copy_text(desc->name);
    p->desc.algorithm = NULL;
    if ((desc->codec && !p->desc.codec) || (desc->feedback && !p->desc.feedback) ||
        (desc->quorum && !p->desc.quorum) || (desc->name && !p->desc.name) ||
        !p->absent)
        return trib_comm_fail(plan->comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
    return TRIB_OK;
}

/* Create the inner plan, its barrier and the memory of a quorum. */
static trib_status_t make_inner(struct trib_offload_plan *p)
{
    struct trib_offload *o = p->offload;

    if (trib_offload_lost(o))
        trib_offload_recover(o);
    struct trib_comm *by = o->agg_comm && !o->broken ? o->agg_comm : o->fallback_comm;
    trib_status_t st = trib_offload_plan_make_inner(p, by, &p->inner);
    if (st == TRIB_OK && by->aggregators)
        st = trib_offload_plan_make_commit(o, p->inner, &p->commit);
    if (st == TRIB_OK)
        st = trib_offload_quorum_make(p);
    if (st != TRIB_OK && trib_offload_lost(o)) {
        trib_offload_recover(o); /* also creates missing inner plans */
        st = o->broken;
    } else if (st != TRIB_OK) {
        return trib_offload_plan_refused(p, by, st);
    }
    return st;
}

static trib_status_t make(struct trib_plan *plan, trib_coll_t coll,
                          const trib_desc_t *desc)
{
    struct trib_offload *o = plan->comm->offload;
    struct trib_offload_plan *p = calloc(1, sizeof(*p));

    if (!p)
        return trib_comm_fail(plan->comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
    assert(o && !plan->offload);
    plan->offload = p;
    plan->ops = &ops;
    p->offload = o;
    trib_status_t st = describe(plan, coll, desc);
    if (st != TRIB_OK)
        return st;
    trib_offload_gate_enter(o);
    link_plan(p);
    st = make_inner(p);
    trib_offload_gate_leave(o);
    return st;
}

static void destroy(struct trib_plan *plan)
{
    struct trib_offload_plan *p = plan->offload;
    struct trib_offload *o = p->offload;

    trib_offload_gate_enter(o);
    unlink_plan(p);
    trib_offload_quorum_free(p);
    trib_plan_destroy(p->inner);
    trib_plan_destroy(p->commit);
    free((char *)(uintptr_t)p->desc.codec);
    free((char *)(uintptr_t)p->desc.feedback);
    free((char *)(uintptr_t)p->desc.quorum);
    free((char *)(uintptr_t)p->desc.name);
    free(p->absent);
    free(p->ready);
    free(p);
    trib_offload_gate_leave(o);
}

static void hold(const struct trib_plan *plan)
{
    trib_offload_gate_enter(plan->offload->offload);
}

static void let_go(const struct trib_plan *plan)
{
    trib_offload_gate_leave(plan->offload->offload);
}

static struct trib_plan *computing(struct trib_plan *plan)
{
    return plan->offload->inner;
}

/* Before a start: choose the communicator that runs it, the same on all ranks, and move
 * the plan there. */
static void find_agg_comm(struct trib_offload_plan *p)
{
    struct trib_offload *o = p->offload;

    while (!o->broken) {
        if (o->agg_comm && o->provider.check)
            o->provider.check(o->provider.arg);
        if (o->agg_comm && o->provider.found && o->provider.found(o->provider.arg))
            trib_offload_leave(o);
        if (trib_offload_lost(o))
            trib_offload_recover(o);
        if (!o->agg_comm && o->next_poll_seq && !o->broken)
            trib_offload_rejoin(o, p);
        if (o->broken || !o->agg_comm || p->inner->comm == o->agg_comm)
            return;
        const trib_status_t st = trib_offload_plan_move(p, o->agg_comm);
        if (st == TRIB_OK)
            return;
        trib_comm_lock(o->agg_comm);
        trib_engine_fail(&o->agg_comm->engine, st, trib_last_error(o->agg_comm));
        trib_comm_unlock(o->agg_comm);
    }
}

/* Add `by` to the parent's number of starts, which includes plans that are not
 * offloaded. A refused start is subtracted again. */
static uint64_t count_start(struct trib_comm *parent, int by)
{
    trib_comm_lock(parent);
    const uint64_t now = parent->starts += (uint64_t)by;
    trib_comm_unlock(parent);
    return now;
}

static trib_status_t start_within(struct trib_plan *plan, const void *send, void *recv)
{
    struct trib_offload_plan *p = plan->offload;
    struct trib_offload *o = p->offload;

    if (p->open)
        return trib_comm_fail(plan->comm, TRIB_ERR_BUSY,
                              "the plan is already running: wait for it first");
    find_agg_comm(p);
    while (!o->broken && trib_offload_quorum_uncommitted(p)) {
        trib_offload_quorum_fence(p);
        find_agg_comm(p);
    }
    if (o->broken)
        return o->broken;
    assert(p->inner && !p->pending);
    p->send = send;
    p->recv = recv;
    p->number = count_start(o->parent, 1);
    p->of_calls = plan->identity.of_calls;
    p->n_ready = 0;
    memset(p->absent, 0, (size_t)o->parent->engine.ranks * sizeof(*p->absent));
    trib_offload_plan_number(p); /* also if other ranks have ended this start */
    if (trib_offload_quorum_start_committed(p))
        return TRIB_OK;
    p->step_before = p->inner->run.now.step;
    trib_status_t st = trib_offload_plan_start_both(p, o->started + 1);
    if (st != TRIB_OK && !trib_offload_lost(o)) {
        (void)count_start(o->parent, -1); /* nothing was started */
        return trib_offload_plan_refused(p, p->inner->comm, st);
    }
    trib_start_log_push(p);
    if (st == TRIB_OK)
        return TRIB_OK;
    trib_offload_recover(o);
    return o->broken;
}

static trib_status_t start(struct trib_plan *plan, const void *send, void *recv)
{
    hold(plan);
    const trib_status_t st = start_within(plan, send, recv);
    let_go(plan);
    return st;
}

static trib_status_t note_ready(struct trib_offload_plan *p, size_t first, size_t count)
{
    if (p->n_ready == p->max_ready) {
        const size_t room = p->max_ready ? 2 * p->max_ready : 16;
        struct trib_ready_range *fed = realloc(p->ready, room * sizeof(*fed));
        if (!fed)
            return trib_comm_fail(p->offload->parent, TRIB_ERR_NO_MEMORY,
                                  "no memory to record a call of trib_plan_ready");
        p->ready = fed;
        p->max_ready = room;
    }
    p->ready[p->n_ready++] = (struct trib_ready_range){first, count};
    return TRIB_OK;
}

static trib_status_t ready_within(struct trib_plan *plan, size_t first, size_t count)
{
    struct trib_offload_plan *p = plan->offload;
    struct trib_offload *o = p->offload;

    if (trib_offload_lost(o))
        trib_offload_recover(o);
    if (o->broken)
        return o->broken;
    if (p->pending_result)
        return note_ready(p, first, count);
    trib_status_t st = trib_plan_ready(p->inner, first, count);
    if (st == TRIB_OK)
        return note_ready(p, first, count);
    if (!trib_offload_lost(o))
        return trib_offload_plan_refused(p, p->inner->comm, st);
    st = note_ready(p, first, count);
    trib_offload_recover(o);
    return st == TRIB_OK ? o->broken : st;
}

static trib_status_t ready(struct trib_plan *plan, size_t first, size_t count)
{
    hold(plan);
    const trib_status_t st = ready_within(plan, first, count);
    let_go(plan);
    return st;
}

static trib_status_t test_within(struct trib_offload_plan *p)
{
    if (p->open)
        trib_offload_plan_advance(p);
    return p->open ? TRIB_INPROGRESS : p->status;
}

static trib_status_t test(struct trib_plan *plan)
{
    hold(plan);
    const trib_status_t st = test_within(plan->offload);
    let_go(plan);
    return st;
}

static trib_status_t check(struct trib_plan *plan)
{
    if (!trib_offload_gate_try(plan->offload->offload))
        return TRIB_INPROGRESS;
    const trib_status_t st = test_within(plan->offload);
    let_go(plan);
    return st;
}

static trib_status_t wait_within(struct trib_plan *plan)
{
    struct trib_offload_plan *p = plan->offload;

    while (p->open) {
        if (p->pending_result && trib_offload_plan_needs_input(p))
            return trib_comm_fail(
                plan->comm, TRIB_ERR_INVALID,
                "the plan waits for elements that were not passed to trib_plan_ready");
        trib_offload_plan_wait(p);
    }
    return p->status;
}

static trib_status_t wait(struct trib_plan *plan)
{
    hold(plan);
    const trib_status_t st = wait_within(plan);
    let_go(plan);
    return st;
}

static bool busy(const struct trib_plan *plan)
{
    hold(plan);
    const bool is_open = plan->offload->open;
    let_go(plan);
    return is_open;
}

static void absent(const struct trib_plan *plan, size_t *elements_out)
{
    const size_t ranks = (size_t)plan->comm->engine.ranks;

    memcpy(elements_out, plan->offload->absent, ranks * sizeof(*elements_out));
}

/* Enter the gate unless the plan is running. */
static trib_status_t hold_idle(struct trib_plan *plan, const char *call)
{
    hold(plan);
    const trib_status_t st =
        plan->offload->open
            ? trib_comm_fail(plan->comm, TRIB_ERR_BUSY,
                             "the plan is still running: wait for it before %s", call)
            : trib_comm_ours(plan->comm, call);
    if (st != TRIB_OK)
        let_go(plan);
    return st;
}

/* Leave the gate. Report an error of the inner plan as an error of the parent. */
static trib_status_t answer(struct trib_plan *plan, trib_status_t st)
{
    if (st != TRIB_OK)
        st = trib_offload_plan_refused(plan->offload, plan->offload->inner->comm, st);
    let_go(plan);
    return st;
}

static trib_status_t state_save(struct trib_plan *plan, void *state, size_t bytes,
                                size_t *bytes_out)
{
    trib_status_t st = hold_idle(plan, "trib_plan_state_save");

    return st != TRIB_OK ? st
                         : answer(plan, trib_plan_state_save(plan->offload->inner,
                                                             state, bytes, bytes_out));
}

static trib_status_t state_load(struct trib_plan *plan, const void *state, size_t bytes)
{
    trib_status_t st = hold_idle(plan, "trib_plan_state_load");

    return st != TRIB_OK
               ? st
               : answer(plan, trib_plan_state_load(plan->offload->inner, state, bytes));
}

static trib_status_t sent(struct trib_plan *plan, const unsigned char **mask_out,
                          size_t *sent_out)
{
    trib_status_t st = hold_idle(plan, "trib_plan_sent");

    return st != TRIB_OK
               ? st
               : answer(plan, trib_plan_sent(plan->offload->inner, mask_out, sent_out));
}

static trib_status_t run(struct trib_plan *plan, const void *send, void *recv)
{
    const trib_status_t st = start(plan, send, recv);

    return st == TRIB_OK ? wait(plan) : st;
}

static const void *input(const struct trib_plan *plan)
{
    const struct trib_offload_plan *p = plan->offload;

    hold(plan);
    const void *given = !p->open ? NULL : p->send ? p->send : p->recv;
    let_go(plan);
    return given;
}

/* Also fail the operations of agg_comm, which the ranks must not repeat on
 * fallback_comm. */
static void fail_all(struct trib_comm *comm, trib_status_t status, const char *text)
{
    struct trib_offload *o = comm->offload;

    trib_comm_fail_all(o->fallback_comm, status, text); /* this ends a recovery */
    trib_comm_fail_all(o->control_comm, status, text);
    trib_offload_gate_enter(o);
    if (o->commit_comm)
        trib_comm_fail_all(o->commit_comm, status, text);
    if (o->agg_comm)
        trib_comm_fail_all(o->agg_comm, status, text);
    trib_offload_gate_leave(o);
}

static void fail(struct trib_plan *plan, trib_status_t status, const char *text)
{
    fail_all(plan->offload->offload->parent, status, text);
}

static const struct trib_plan_ops ops = {
    .run = run,
    .start = start,
    .ready = ready,
    .test = test,
    .poll = check,
    .wait = wait,
    .busy = busy,
    .input = input,
    .computing = computing,
    .hold = hold,
    .let_go = let_go,
    .state_save = state_save,
    .state_load = state_load,
    .sent = sent,
    .absent = absent,
    .fail = fail,
    .destroy = destroy,
};

const struct trib_comm_hooks trib_offload_hooks = {
    .takes = takes,
    .plan_make = make,
    .poll = trib_offload_poll,
    .registered = trib_offload_register,
    .deregister = trib_offload_deregister,
    .stats = trib_offload_stats,
    .fail = fail_all,
    .continues = trib_offload_continues,
    .detach = trib_offload_detach,
    .drop = trib_offload_drop,
    .forget_in_child = trib_offload_free_in_child,
};

/* Idle hook of the parent's engine. The caller holds the parent's lock. May recover and
 * therefore block. */
static void poll_from_parent(void *arg)
{
    struct trib_offload *o = arg;

    assert(o->parent->offload == o && atomic_load(&o->parent->lock));
    trib_comm_unlock(o->parent);
    trib_offload_poll(o->parent);
    trib_comm_lock(o->parent);
}

/* Settings of control_comm and commit_comm, which carry only a few numbers at a
 * time. */
static struct trib_config control_settings(const struct trib_comm *parent)
{
    struct trib_config cfg = parent->cfg;

    cfg.window = 1;
    cfg.chunk = CONTROL_CHUNK;
    cfg.origin[TRIB_CONFIG_ROW_chunk] =
        TRIB_ORIGIN_API; /* the wireup must not enlarge it */
    cfg.encode_threads = 0;
    return cfg;
}

trib_status_t trib_offload_attach(struct trib_comm *comm)
{
    const struct trib_config small = control_settings(comm);
    struct trib_offload *o = calloc(1, sizeof(*o));
    struct trib_comm *fallback_comm = NULL, *control_comm = NULL, *commit_comm = NULL;

    assert(!comm->offload && !comm->hooks);
    trib_status_t st = trib_comm_split_within(comm, &fallback_comm);
    if (st == TRIB_OK)
        st = trib_comm_dup(comm, &small, &control_comm);
    if (st == TRIB_OK)
        st = trib_comm_dup(comm, &small, &commit_comm);
    if (st == TRIB_OK && !o)
        st = trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for an offload");
    if (st != TRIB_OK) {
        trib_comm_dispose_dup(fallback_comm, comm);
        trib_comm_dispose_dup(control_comm, comm);
        trib_comm_dispose_dup(commit_comm, comm);
        free(o);
        return st;
    }
    fallback_comm->is_fallback = true;
    o->parent = comm;
    trib_offload_gate_make(o);
    o->fallback_comm = fallback_comm;
    o->control_comm = control_comm;
    o->commit_comm = commit_comm;
    o->poll_every = 1;
    comm->offload = o;
    comm->hooks = &trib_offload_hooks;
    comm->engine.idle_hook = poll_from_parent;
    comm->engine.idle_hook_arg = o;
    return TRIB_OK;
}
