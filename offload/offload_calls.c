/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables by which comm/ reaches offloaded plans (comm/plan_ops.h), and what
 * attaches them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "offload/offload_plan.h"

enum { CONTROL_CHUNK = 4096 };

static const struct trib_plan_ops ops;

static char *copy_text(const char *text)
{
    return text ? strdup(text) : NULL;
}

static void link_plan(struct trib_offload_plan *s)
{
    struct trib_offload_plan **end = &s->offload->first;

    while (*end)
        end = &(*end)->next;
    *end = s;
}

static void unlink_plan(struct trib_offload_plan *s)
{
    struct trib_offload_plan **at = &s->offload->first;

    while (*at && *at != s)
        at = &(*at)->next;
    if (*at)
        *at = s->next;
}

static bool takes(const struct trib_comm *comm, trib_coll_t coll,
                  const trib_desc_t *desc, bool leaving)
{
    const char *name = desc->algorithm ? desc->algorithm : comm->cfg.algorithm;
    const struct trib_algo *algo = trib_algo_find(name);

    return coll == TRIB_ALLREDUCE && !leaving &&
           (trib_text_is_auto(name) || (algo && algo->aggregators));
}

static trib_status_t make(struct trib_plan *plan, trib_coll_t coll,
                          const trib_desc_t *desc)
{
    struct trib_offload *v = plan->comm->offload;
    struct trib_offload_plan *s = calloc(1, sizeof(*s));

    if (!s)
        return trib_comm_fail(plan->comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
    plan->offload = s;
    plan->ops = &ops;
    s->offload = v;
    s->absent = calloc((size_t)plan->comm->engine.ranks, sizeof(*s->absent));
    s->coll = coll;
    s->desc = *desc;
    s->desc.codec = copy_text(desc->codec);
    s->desc.feedback = copy_text(desc->feedback);
    s->desc.quorum = copy_text(desc->quorum);
    s->desc.name = copy_text(desc->name);
    s->desc.algorithm = NULL;
    if ((desc->codec && !s->desc.codec) || (desc->feedback && !s->desc.feedback) ||
        (desc->quorum && !s->desc.quorum) || (desc->name && !s->desc.name) ||
        !s->absent)
        return trib_comm_fail(plan->comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
    link_plan(s);
    if (trib_offload_lost(v))
        trib_offload_recover(v);
    struct trib_comm *by = v->channel && !v->broken ? v->channel : v->spare;
    trib_status_t st = trib_offload_plan_make_inner(s, by, &s->now);
    if (st == TRIB_OK && by->aggregators)
        st = trib_offload_plan_make_commit(v, s->now, &s->confirm);
    if (st == TRIB_OK)
        st = trib_offload_quorum_make(s);
    if (st != TRIB_OK && trib_offload_lost(v)) {
        trib_offload_recover(v); /* makes what there is no plan for, too */
        st = v->broken;
    } else if (st != TRIB_OK) {
        return trib_offload_plan_refused(s, by, st);
    }
    return st;
}

static void destroy(struct trib_plan *plan)
{
    struct trib_offload_plan *s = plan->offload;

    unlink_plan(s);
    trib_offload_quorum_free(s);
    trib_plan_destroy(s->now);
    trib_plan_destroy(s->confirm);
    free((char *)(uintptr_t)s->desc.codec);
    free((char *)(uintptr_t)s->desc.feedback);
    free((char *)(uintptr_t)s->desc.quorum);
    free((char *)(uintptr_t)s->desc.name);
    free(s->absent);
    free(s->fed);
    free(s);
}

static struct trib_plan *computing(struct trib_plan *plan)
{
    return plan->offload->now;
}

/* Which channel there is, and with it the plan, before a start: the same on all
 * ranks. */
static void find_way(struct trib_offload_plan *s)
{
    struct trib_offload *v = s->offload;

    while (!v->broken) {
        if (v->channel && v->way.look)
            v->way.look(v->way.arg);
        if (v->channel && v->way.found && v->way.found(v->way.arg))
            trib_offload_leave(v);
        if (trib_offload_lost(v))
            trib_offload_recover(v);
        if (!v->channel && v->ask_at && !v->broken)
            trib_offload_rejoin(v, s);
        if (v->broken || !v->channel || s->now->comm == v->channel)
            return;
        const trib_status_t st = trib_offload_plan_move(s, v->channel);
        if (st == TRIB_OK)
            return;
        trib_comm_lock(v->channel);
        trib_engine_fail(&v->channel->engine, st, trib_last_error(v->channel));
        trib_comm_unlock(v->channel);
    }
}

static trib_status_t start(struct trib_plan *plan, const void *send, void *recv)
{
    struct trib_offload_plan *s = plan->offload;
    struct trib_offload *v = s->offload;

    if (s->open)
        return trib_comm_fail(
            plan->comm, TRIB_ERR_BUSY,
            "the plan was started before and is not done: wait first");
    find_way(s);
    while (!v->broken && trib_offload_quorum_uncommitted(s)) {
        trib_offload_quorum_fence(s);
        find_way(s);
    }
    if (v->broken)
        return v->broken;
    s->send = send;
    s->recv = recv;
    s->number = ++v->home->starts;
    s->of_calls = plan->identity.of_calls;
    s->n_fed = 0;
    memset(s->absent, 0, (size_t)v->home->engine.ranks * sizeof(*s->absent));
    trib_offload_plan_number(s); /* also of a first start that the others have ended:
                            * its number is in the key */
    if (trib_offload_quorum_start_committed(s))
        return TRIB_OK;
    s->step_before = s->now->run.step;
    trib_status_t st = trib_offload_plan_start_both(s, v->started + 1);
    if (st != TRIB_OK && !trib_offload_lost(v)) {
        v->home->starts--; /* nothing was started */
        return trib_offload_plan_refused(s, s->now->comm, st);
    }
    trib_start_log_push(s);
    if (st == TRIB_OK)
        return TRIB_OK;
    trib_offload_recover(v);
    return v->broken;
}

static trib_status_t note_fed(struct trib_offload_plan *s, size_t first, size_t count)
{
    if (s->n_fed == s->room_fed) {
        const size_t room = s->room_fed ? 2 * s->room_fed : 16;
        struct trib_ready_range *fed = realloc(s->fed, room * sizeof(*fed));
        if (!fed)
            return trib_comm_fail(
                s->offload->home, TRIB_ERR_NO_MEMORY,
                "no memory to note what was named by trib_plan_ready");
        s->fed = fed;
        s->room_fed = room;
    }
    s->fed[s->n_fed++] = (struct trib_ready_range){first, count};
    return TRIB_OK;
}

static trib_status_t ready(struct trib_plan *plan, size_t first, size_t count)
{
    struct trib_offload_plan *s = plan->offload;
    struct trib_offload *v = s->offload;

    if (trib_offload_lost(v))
        trib_offload_recover(v);
    if (v->broken)
        return v->broken;
    if (s->due)
        return note_fed(s, first, count);
    trib_status_t st = trib_plan_ready(s->now, first, count);
    if (st == TRIB_OK)
        return note_fed(s, first, count);
    if (!trib_offload_lost(v))
        return trib_offload_plan_refused(s, s->now->comm, st);
    st = note_fed(s, first, count);
    trib_offload_recover(v);
    return st == TRIB_OK ? v->broken : st;
}

static trib_status_t test(struct trib_plan *plan)
{
    struct trib_offload_plan *s = plan->offload;

    if (s->open)
        trib_offload_plan_advance(s);
    return s->open ? TRIB_INPROGRESS : s->status;
}

static trib_status_t wait(struct trib_plan *plan)
{
    struct trib_offload_plan *s = plan->offload;

    while (s->open) {
        if (s->due && trib_offload_plan_needs_input(s))
            return trib_comm_fail(
                plan->comm, TRIB_ERR_INVALID,
                "the plan waits for elements that trib_plan_ready has not "
                "named");
        trib_offload_plan_wait(s);
    }
    return s->status;
}

static bool busy(const struct trib_plan *plan)
{
    return plan->offload->open;
}

static void absent(const struct trib_plan *plan, size_t *elements_out)
{
    const size_t ranks = (size_t)plan->comm->engine.ranks;

    memcpy(elements_out, plan->offload->absent, ranks * sizeof(*elements_out));
}

static trib_status_t idle(struct trib_plan *plan, const char *call)
{
    return plan->offload->open
               ? trib_comm_fail(plan->comm, TRIB_ERR_BUSY,
                                "the plan still runs: wait for it before %s", call)
               : trib_comm_ours(plan->comm, call);
}

static trib_status_t answer(struct trib_plan *plan, trib_status_t st)
{
    return st == TRIB_OK
               ? st
               : trib_offload_plan_refused(plan->offload, plan->offload->now->comm, st);
}

static trib_status_t state_save(struct trib_plan *plan, void *state, size_t bytes,
                                size_t *bytes_out)
{
    trib_status_t st = idle(plan, "trib_plan_state_save");

    return st != TRIB_OK ? st
                         : answer(plan, trib_plan_state_save(plan->offload->now, state,
                                                             bytes, bytes_out));
}

static trib_status_t state_load(struct trib_plan *plan, const void *state, size_t bytes)
{
    trib_status_t st = idle(plan, "trib_plan_state_load");

    return st != TRIB_OK
               ? st
               : answer(plan, trib_plan_state_load(plan->offload->now, state, bytes));
}

static trib_status_t sent(struct trib_plan *plan, const unsigned char **mask_out,
                          size_t *sent_out)
{
    trib_status_t st = idle(plan, "trib_plan_sent");

    return st != TRIB_OK
               ? st
               : answer(plan, trib_plan_sent(plan->offload->now, mask_out, sent_out));
}

static trib_status_t run(struct trib_plan *plan, const void *send, void *recv)
{
    const trib_status_t st = start(plan, send, recv);

    return st == TRIB_OK ? wait(plan) : st;
}

static const void *input(const struct trib_plan *plan)
{
    const struct trib_offload_plan *s = plan->offload;

    return !s->open ? NULL : s->send ? s->send : s->recv;
}

/* What aggregators have under way ends, too, and the ranks are not to do it again by
 * themselves. */
static void fail(struct trib_plan *plan, trib_status_t status, const char *text)
{
    const struct trib_offload *v = plan->offload->offload;

    trib_comm_fail_all(v->spare, status, text);
    trib_comm_fail_all(v->control_comm, status, text);
    if (v->confirms)
        trib_comm_fail_all(v->confirms, status, text);
    if (v->channel)
        trib_comm_fail_all(v->channel, status, text);
}

static const struct trib_plan_ops ops = {
    .run = run,
    .start = start,
    .ready = ready,
    .test = test,
    .wait = wait,
    .busy = busy,
    .input = input,
    .computing = computing,
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
    .detach = trib_offload_detach,
    .drop = trib_offload_drop,
    .forget_in_child = trib_offload_forget_in_child,
};

/* While the home's engine waits, with its lock. */
static void look_from_home(void *arg)
{
    struct trib_offload *v = arg;

    v->in_home = true;
    trib_offload_poll(v->home);
    v->in_home = false;
}

/* It carries a few numbers at a time. */
static struct trib_config control_settings(const struct trib_comm *home)
{
    struct trib_config cfg = home->cfg;

    cfg.window = 1;
    cfg.chunk = CONTROL_CHUNK;
    cfg.origin[TRIB_CONFIG_ROW_chunk] = TRIB_ORIGIN_API; /* not to be enlarged */
    cfg.encode_threads = 0;
    return cfg;
}

trib_status_t trib_offload_attach(struct trib_comm *comm)
{
    const struct trib_config small = control_settings(comm);
    struct trib_offload *v = calloc(1, sizeof(*v));
    struct trib_comm *spare = NULL, *control_comm = NULL, *confirms = NULL;

    trib_status_t st = trib_split(comm, 0, 0, &spare);
    if (st == TRIB_OK)
        st = trib_comm_dup(comm, &small, &control_comm);
    if (st == TRIB_OK)
        st = trib_comm_dup(comm, &small, &confirms);
    if (st == TRIB_OK && !v)
        st = trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a service");
    if (st != TRIB_OK) {
        if (spare)
            trib_comm_dispose(spare);
        if (control_comm)
            trib_comm_dispose(control_comm);
        if (confirms)
            trib_comm_dispose(confirms);
        free(v);
        return st;
    }
    spare->stands_in = true;
    v->home = comm;
    v->spare = spare;
    v->control_comm = control_comm;
    v->confirms = confirms;
    v->stride = 1;
    comm->offload = v;
    comm->hooks = &trib_offload_hooks;
    comm->engine.aside = look_from_home;
    comm->engine.aside_arg = v;
    return TRIB_OK;
}
