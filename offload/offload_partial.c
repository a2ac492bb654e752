/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans that are served with a quorum: results that a user has before all ranks have
 * them.
 *
 * Starts of the channel have one order, in which each rank ends them. So of a rank that
 * has ended start n all before it are ended, too, and of those that are not confirmed
 * it has a copy: each plan has room for one, since its next start waits until the last
 * is confirmed.
 */
#include "base/text.h"
#include "offload/offload_plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/payload/partial.h"

static int ranks_of(const struct trib_offload *v)
{
    return v->home->engine.ranks;
}

bool trib_offload_plan_has_quorum(const struct trib_offload_plan *s)
{
    return s->now && s->now->run.desc.quorum.need;
}

bool trib_offload_any_quorum(const struct trib_offload *v)
{
    for (const struct trib_offload_plan *s = v->first; s; s = s->next)
        if (s->now && s->now->has_quorum)
            return true;
    return false;
}

/* Results that are kept ------------------------------------------------------------ */

static void free_known(struct trib_committed_start *k)
{
    if (!k)
        return;
    trib_plan_destroy(k->confirm);
    free(k->start);
    free(k);
}

static bool is_running(const struct trib_plan *plan)
{
    const int state =
        plan ? atomic_load_explicit(&plan->run.state, memory_order_acquire) : 0;

    return state == TRIB_RUN_QUEUED || state == TRIB_RUN_ACTIVE;
}

static struct trib_committed_start *make_known(struct trib_quorum_start *start)
{
    struct trib_committed_start *k = start ? calloc(1, sizeof(*k)) : NULL;

    if (k)
        k->start = start;
    else
        free(start);
    return k;
}

static void append(struct trib_committed_start **list, struct trib_committed_start *k)
{
    while (*list)
        list = &(*list)->next;
    *list = k;
}

trib_status_t trib_offload_quorum_make(struct trib_offload_plan *s)
{
    free_known(s->known);
    s->known = NULL;
    if (!trib_offload_plan_has_quorum(s))
        return TRIB_OK;
    s->known = make_known(trib_quorum_room(&s->now->run));
    return s->known
               ? TRIB_OK
               : trib_comm_fail(s->now->comm, TRIB_ERR_NO_MEMORY,
                                "no memory for the result of a plan with a quorum");
}

void trib_offload_quorum_free(struct trib_offload_plan *s)
{
    struct trib_committed_start *k = s->known;
    const bool kept = k && trib_offload_quorum_uncommitted(s);

    trib_start_log_remove(s);
    free(s->due);
    s->due = NULL;
    s->known = NULL;
    if (!kept) {
        free_known(k);
        return;
    }
    k->confirm = s->confirm;
    s->confirm = NULL;
    append(&s->offload->freed, k);
}

void trib_offload_quorum_drop_barriers(struct trib_offload *v)
{
    for (struct trib_committed_start *k = v->freed; k; k = k->next) {
        trib_plan_destroy(k->confirm);
        k->confirm = NULL;
    }
}

void trib_offload_quorum_drop(struct trib_offload *v)
{
    trib_offload_quorum_forget(v, true);
    while (v->ahead) {
        struct trib_committed_start *k = v->ahead;
        v->ahead = k->next;
        free_known(k);
    }
}

/* A barrier of a plan that is freed may have been left meanwhile. */
static void count_freed(struct trib_offload *v)
{
    for (const struct trib_committed_start *k = v->freed; k; k = k->next)
        if (k->confirm && trib_offload_inner_succeeded(k->confirm) &&
            k->start->number > v->confirmed)
            v->confirmed = k->start->number;
}

void trib_offload_quorum_forget(struct trib_offload *v, bool all)
{
    count_freed(v);
    for (struct trib_committed_start **at = &v->freed; *at;) {
        struct trib_committed_start *k = *at;
        if (!all && (k->start->number > v->confirmed || is_running(k->confirm))) {
            at = &k->next;
            continue;
        }
        *at = k->next;
        free_known(k);
    }
}

/* Starts --------------------------------------------------------------------------- */

/* Who is missing in the newest start, whose run is done. */
static void note(struct trib_offload_plan *s)
{
    trib_quorum_copy(&s->now->run, s->ordinal, s->known->start);
    trib_quorum_absent(s->known->start, ranks_of(s->offload), s->absent);
}

/* It stays in the list. Its barrier begins, in the same order on all ranks. */
static void end(struct trib_offload_plan *s)
{
    struct trib_offload *v = s->offload;

    note(s);
    if (s->ordinal > v->ended)
        v->ended = s->ordinal;
    v->offloaded++;
    trib_offload_plan_close(s, TRIB_OK);
    s->covers = s->ordinal;
    const trib_status_t st = trib_plan_start(s->confirm);
    if (st == TRIB_OK)
        return;
    trib_comm_lock(v->confirms); /* the others wait for it in vain: the fence ends the
                                  * channel */
    trib_engine_fail(&v->confirms->engine, st, trib_last_error(v->confirms));
    trib_comm_unlock(v->confirms);
}

void trib_offload_quorum_end_all(struct trib_offload *v)
{
    for (struct trib_offload_plan *s = v->oldest; s; s = s->newer)
        if (s->open && trib_offload_plan_has_quorum(s) &&
            s->now->run.step != s->step_before && trib_offload_inner_succeeded(s->now))
            end(s);
}

/* While a rank waits for a barrier: others may have left the channel, and wait for it.
 * With the lock of the barriers' engine. */
static void look_at_channel(void *arg)
{
    struct trib_offload *v = arg;
    struct trib_engine *e = &v->channel->engine;

    if (!e->failed && trib_comm_try_lock(v->channel)) {
        if (trib_engine_progress(e))
            trib_engine_awake(e);
        else
            (void)trib_engine_look(e);
        trib_agreement_look(v);
        trib_comm_unlock(v->channel);
    }
    if (e->failed)
        trib_engine_fail(&v->confirms->engine, TRIB_ERR_ABORTED, "the service is lost");
}

/* A later start of another plan may have shown that all ranks have ended this one: its
 * barrier still is to be left. */
bool trib_offload_quorum_uncommitted(const struct trib_offload_plan *s)
{
    return s->pending || is_running(s->confirm);
}

void trib_offload_quorum_fence(struct trib_offload_plan *s)
{
    struct trib_offload *v = s->offload;
    struct trib_engine *e = &v->channel->engine;
    trib_status_t st = v->confirms->engine.failed;

    v->confirms->engine.aside = look_at_channel;
    v->confirms->engine.aside_arg = v;
    if (st == TRIB_OK)
        st = trib_plan_wait(s->confirm);
    if (trib_offload_lost(v))
        return;
    if (st == TRIB_OK) {
        trib_offload_collect_commits(v);
        return;
    }
    trib_comm_lock(v->channel); /* who recovers finds out who is lost */
    trib_engine_fail(e, st, trib_last_error(v->confirms));
    trib_comm_unlock(v->channel);
}

/* Without the channel -------------------------------------------------------------- */

/* From one rank to all, over the spare. */
static trib_status_t spread(struct trib_offload *v, int root, void *bytes, size_t n)
{
    trib_desc_t desc = TRIB_DESC_INIT;
    struct trib_plan *plan;

    desc.recv = bytes;
    desc.count = n;
    desc.dtype = TRIB_I8;
    desc.root = root;
    desc.codec = "none";
    desc.algorithm = TRIB_AUTO;
    trib_status_t st = trib_plan_make(v->spare, TRIB_BROADCAST, &desc, false, &plan);
    if (st == TRIB_OK)
        st = trib_plan_run(plan, NULL, bytes);
    trib_plan_destroy(plan);
    return st;
}

static struct trib_offload_plan *pending_at(const struct trib_offload *v,
                                            uint64_t number)
{
    struct trib_offload_plan *s = v->oldest;

    while (s && s->ordinal != number)
        s = s->newer;
    return s;
}

/* The copy of a start that this rank has ended. */
static struct trib_quorum_start *copy_of(const struct trib_offload *v, uint64_t number)
{
    const struct trib_offload_plan *s = pending_at(v, number);

    if (s)
        return s->known->start;
    for (struct trib_committed_start *k = v->freed; k; k = k->next)
        if (k->start->number == number)
            return k->start;
    return NULL;
}

/* *start_out: this rank's own copy, or a new one that the caller owns. */
static trib_status_t exchange(struct trib_offload *v, int root, uint64_t number,
                              struct trib_quorum_start **start_out)
{
    const bool mine = v->home->engine.rank == root;
    struct trib_quorum_start *start = mine ? copy_of(v, number) : NULL;
    uint64_t bytes = start ? trib_quorum_start_bytes(start) : 0;

    trib_status_t st = spread(v, root, &bytes, sizeof(bytes));
    if (st == TRIB_OK && bytes < sizeof(*start))
        st = trib_comm_fail(
            v->spare, TRIB_ERR_PROTOCOL,
            "rank %d does not have the result of a sum that it has ended", root);
    if (st == TRIB_OK && !mine)
        start = malloc(bytes);
    if (st == TRIB_OK && !start)
        st = trib_comm_fail(v->spare, TRIB_ERR_NO_MEMORY,
                            "no memory for the result of a sum");
    if (st == TRIB_OK)
        st = spread(v, root, start, bytes);
    if (st == TRIB_OK && !trib_quorum_valid(start, bytes, ranks_of(v)))
        st = trib_comm_fail(v->spare, TRIB_ERR_PROTOCOL,
                            "rank %d has sent what is no result of a sum", root);
    if (st != TRIB_OK && !mine)
        free(start);
    *start_out = st == TRIB_OK ? start : NULL;
    return st;
}

/* What this rank makes of a start that others have ended; start is its own now. */
static trib_status_t take(struct trib_offload *v, struct trib_quorum_start *start)
{
    struct trib_offload_plan *s = pending_at(v, start->number);

    if (start->number > v->started) {
        struct trib_committed_start *k = make_known(start);
        if (!k)
            return trib_comm_fail(v->spare, TRIB_ERR_NO_MEMORY,
                                  "no memory for the result of a sum");
        append(&v->ahead, k);
        return TRIB_OK;
    }
    if (!s || !s->open) {
        free(start);
        return TRIB_OK;
    }
    if (!trib_quorum_of_run(start, &s->now->run)) {
        free(start);
        return trib_comm_fail(v->spare, TRIB_ERR_MISMATCH,
                              "ranks disagree on operation %llu of the service",
                              (unsigned long long)s->ordinal);
    }
    s->begun = s->now->run.step != s->step_before;
    if (s->begun)
        trib_quorum_undo(&s->now->comm->engine, &s->now->run, start);
    s->due = start;
    trib_start_log_remove(s);
    return TRIB_OK;
}

trib_status_t trib_offload_quorum_spread(struct trib_offload *v, uint64_t done,
                                         uint64_t ended, struct trib_comm **by_out)
{
    const int size = ranks_of(v), rank = v->home->engine.rank;
    const int64_t say[TRIB_AGREE_WORDS] = {[TRIB_AGREE_HAS] =
                                               v->ended == ended ? size - rank : 0};

    *by_out = v->control_comm;
    trib_status_t st = trib_agreement_run(v, say);
    const int root = size - (int)v->said[TRIB_AGREE_HAS];
    *by_out = st == TRIB_OK ? v->spare : v->control_comm;
    for (uint64_t n = done + 1; n <= ended && st == TRIB_OK; n++) {
        struct trib_quorum_start *start;
        st = exchange(v, root, n, &start);
        if (st == TRIB_OK && rank != root)
            st = take(v, start);
    }
    return st;
}

bool trib_offload_quorum_start_committed(struct trib_offload_plan *s)
{
    struct trib_offload *v = s->offload;
    struct trib_committed_start *k = v->ahead;

    if (!k)
        return false;
    assert(k->start->number == v->started + 1);
    s->ordinal = ++v->started;
    s->open = true;
    s->begun = false;
    s->due = k->start;
    v->ahead = k->next;
    free(k);
    return true;
}

static bool fits(const struct trib_offload_plan *s)
{
    return s->due->count == s->desc.count &&
           s->due->element == trib_dtype_size(s->desc.dtype) && s->now->run.residual;
}

void trib_offload_quorum_deliver(struct trib_offload_plan *s)
{
    struct trib_offload *v = s->offload;
    trib_status_t st = TRIB_OK;

    if (fits(s))
        trib_quorum_deliver(&s->now->comm->engine, &s->now->run, s->due, s->send,
                            s->recv, s->begun);
    else
        st = trib_comm_fail(
            v->home, TRIB_ERR_MISMATCH,
            "ranks disagree on operation %llu of the service: the others have "
            "summed %llu elements, this rank started a plan of %zu",
            (unsigned long long)s->ordinal, (unsigned long long)s->due->count,
            s->desc.count);
    if (st == TRIB_OK)
        trib_quorum_absent(s->due, ranks_of(v), s->absent);
    free(s->due);
    s->due = NULL;
    trib_offload_plan_close(s, st);
}

void trib_start_log_pop_to(struct trib_offload *v, uint64_t ordinal)
{
    trib_offload_quorum_end_all(v); /* so that each rank begins each barrier */
    if (ordinal > v->confirmed)
        v->confirmed = ordinal;
    while (v->oldest && v->oldest->ordinal <= ordinal)
        trib_start_log_pop(v, TRIB_OK);
    trib_offload_quorum_forget(v, false);
}

void trib_offload_collect_commits(struct trib_offload *v)
{
    for (struct trib_offload_plan *s = v->first; s; s = s->next)
        if (s->confirm && s->covers > v->confirmed &&
            trib_offload_inner_succeeded(s->confirm))
            trib_start_log_pop_to(v, s->covers);
    trib_start_log_pop_to(v, v->confirmed);
}
