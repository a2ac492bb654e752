/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Offloaded plans with a quorum: a user may get a result before all ranks have it.
 *
 * Each rank ends the starts of agg_comm in the same order. A rank that has ended start
 * n has therefore ended all earlier starts, and it keeps a copy of each result that is
 * not committed. A plan keeps at most one, because its next start waits until the last
 * one is committed.
 */
#include "agg/client/offload_plan.h"
#include "base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "comm/core/comm_lock.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/plan.h"
#include "comm/plan/plan_make.h"
#include "pipeline/payload/error_feedback.h"
#include "pipeline/payload/partial.h"

static int ranks_of(const struct trib_offload *o)
{
    return o->parent->engine.ranks;
}

bool trib_offload_plan_has_quorum(const struct trib_offload_plan *p)
{
    return p->inner && p->inner->run.desc.quorum.need;
}

bool trib_offload_any_quorum(const struct trib_offload *o)
{
    for (const struct trib_offload_plan *p = o->plans; p; p = p->next)
        if (p->inner && p->inner->has_quorum)
            return true;
    return false;
}

/* Kept results --------------------------------------------------------------------- */

static void free_committed(struct trib_committed_start *k)
{
    if (!k)
        return;
    trib_plan_destroy(k->commit);
    free(k->start);
    free(k);
}

static bool is_running(const struct trib_plan *plan)
{
    const int state =
        plan ? atomic_load_explicit(&plan->run.now.state, memory_order_acquire) : 0;

    return state == TRIB_RUN_QUEUED || state == TRIB_RUN_ACTIVE;
}

static struct trib_committed_start *make_committed(struct trib_quorum_start *start)
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

trib_status_t trib_offload_quorum_make(struct trib_offload_plan *p)
{
    free_committed(p->committed);
    p->committed = NULL;
    if (!trib_offload_plan_has_quorum(p))
        return TRIB_OK;
    p->committed = make_committed(trib_quorum_room(&p->inner->run));
    return p->committed
               ? TRIB_OK
               : trib_comm_fail(p->inner->comm, TRIB_ERR_NO_MEMORY,
                                "no memory for the result of a plan with a quorum");
}

void trib_offload_quorum_free(struct trib_offload_plan *p)
{
    struct trib_committed_start *k = p->committed;
    const bool kept = k && trib_offload_quorum_uncommitted(p);

    trib_start_log_remove(p);
    free(p->pending_result);
    p->pending_result = NULL;
    p->committed = NULL;
    if (!kept) {
        free_committed(k);
        return;
    }
    k->commit = p->commit;
    p->commit = NULL;
    append(&p->offload->freed, k);
}

void trib_offload_quorum_drop_barriers(struct trib_offload *o)
{
    for (struct trib_committed_start *k = o->freed; k; k = k->next) {
        trib_plan_destroy(k->commit);
        k->commit = NULL;
    }
}

void trib_offload_quorum_drop(struct trib_offload *o)
{
    trib_offload_quorum_forget(o, true);
    while (o->ahead) {
        struct trib_committed_start *k = o->ahead;
        o->ahead = k->next;
        free_committed(k);
    }
}

/* This rank may have left the barrier of a freed plan since. */
static void count_freed(struct trib_offload *o)
{
    for (const struct trib_committed_start *k = o->freed; k; k = k->next)
        if (k->commit && trib_offload_inner_succeeded(k->commit) &&
            k->start->number > o->committed)
            o->committed = k->start->number;
}

void trib_offload_quorum_forget(struct trib_offload *o, bool all)
{
    count_freed(o);
    for (struct trib_committed_start **at = &o->freed; *at;) {
        struct trib_committed_start *k = *at;
        if (!all && (k->start->number > o->committed || is_running(k->commit))) {
            at = &k->next;
            continue;
        }
        *at = k->next;
        free_committed(k);
    }
}

/* Starts --------------------------------------------------------------------------- */

/* Copy the result of the newest start, whose run is done, and note the absent ranks. */
static void note(struct trib_offload_plan *p)
{
    assert(p->committed && p->commit);
    trib_quorum_copy(&p->inner->run, p->seq, p->committed->start);
    trib_quorum_absent(p->committed->start, ranks_of(p->offload), p->absent);
}

/* End a start for its user. It stays in the log, and its barrier starts, in the same
 * order on all ranks. */
static void end(struct trib_offload_plan *p)
{
    struct trib_offload *o = p->offload;

    note(p);
    if (p->seq > o->ended)
        o->ended = p->seq;
    o->offloaded++;
    trib_offload_plan_close(p, TRIB_OK);
    p->committed_upto = p->seq;
    const trib_status_t st = trib_plan_start(p->commit);
    if (st == TRIB_OK)
        return;
    /* Other ranks would wait for the barrier: make the fence fail agg_comm. */
    trib_comm_lock(o->commit_comm);
    trib_engine_fail(&o->commit_comm->engine, st, trib_last_error(o->commit_comm));
    trib_comm_unlock(o->commit_comm);
}

void trib_offload_quorum_end_all(struct trib_offload *o)
{
    for (struct trib_offload_plan *p = o->oldest; p; p = p->newer)
        if (p->open && trib_offload_plan_has_quorum(p) &&
            p->inner->run.now.step != p->step_before &&
            trib_offload_inner_succeeded(p->inner))
            end(p);
}

/* Idle hook of commit_comm. The caller holds its lock. While this rank waits in a
 * barrier, the others may have abandoned agg_comm and wait for this rank. */
static void drive_agg_comm(void *arg)
{
    struct trib_offload *o = arg;
    struct trib_engine *e = &o->agg_comm->engine;

    if (!e->failed && trib_comm_try_lock(o->agg_comm)) {
        trib_engine_drive(e);
        trib_agreement_check(o);
        trib_comm_unlock(o->agg_comm);
    }
    if (e->failed)
        trib_engine_fail(&o->commit_comm->engine, TRIB_ERR_ABORTED,
                         "the aggregators are lost");
}

/* A later start of another plan may have committed this one (it is no longer pending).
 * Its barrier must still end before the next start. */
bool trib_offload_quorum_uncommitted(const struct trib_offload_plan *p)
{
    return p->pending || is_running(p->commit);
}

void trib_offload_quorum_fence(struct trib_offload_plan *p)
{
    struct trib_offload *o = p->offload;
    struct trib_engine *e = &o->agg_comm->engine;
    trib_status_t st = o->commit_comm->engine.failed;

    assert(p->commit && p->inner->comm == o->agg_comm);
    o->commit_comm->engine.idle_hook = drive_agg_comm;
    o->commit_comm->engine.idle_hook_arg = o;
    if (st == TRIB_OK)
        st = trib_plan_wait(p->commit);
    if (trib_offload_lost(o))
        return;
    if (st == TRIB_OK) {
        trib_offload_collect_commits(o);
        return;
    }
    trib_comm_lock(o->agg_comm); /* the recovery determines which rank is lost */
    trib_engine_fail(e, st, trib_last_error(o->commit_comm));
    trib_comm_unlock(o->agg_comm);
}

/* After agg_comm ------------------------------------------------------------------- */

/* Broadcast from `root` to all ranks on fallback_comm. */
static trib_status_t spread(struct trib_offload *o, int root, void *bytes, size_t n)
{
    trib_desc_t desc = TRIB_DESC_INIT;
    struct trib_plan *plan;

    desc.recv = bytes;
    desc.count = n;
    desc.dtype = TRIB_I8;
    desc.root = root;
    desc.codec = "none";
    desc.algorithm = TRIB_AUTO;
    trib_status_t st =
        trib_plan_make(o->fallback_comm, TRIB_BROADCAST, &desc, false, &plan);
    if (st == TRIB_OK)
        st = trib_plan_run(plan, NULL, bytes);
    trib_plan_destroy(plan);
    return st;
}

static struct trib_offload_plan *pending_at(const struct trib_offload *o,
                                            uint64_t number)
{
    struct trib_offload_plan *p = o->oldest;

    while (p && p->seq != number)
        p = p->newer;
    return p;
}

/* Return this rank's copy of the result of a start; NULL: none. */
static struct trib_quorum_start *copy_of(const struct trib_offload *o, uint64_t number)
{
    const struct trib_offload_plan *p = pending_at(o, number);

    if (p)
        return p->committed->start;
    for (struct trib_committed_start *k = o->freed; k; k = k->next)
        if (k->start->number == number)
            return k->start;
    return NULL;
}

/* Broadcast the result of start `number` from `root`. *start_out is the local copy on
 * `root`; on other ranks it is a new copy, owned by the caller. */
static trib_status_t exchange(struct trib_offload *o, int root, uint64_t number,
                              struct trib_quorum_start **start_out)
{
    const bool mine = o->parent->engine.rank == root;
    struct trib_quorum_start *start = mine ? copy_of(o, number) : NULL;
    uint64_t bytes = start ? trib_quorum_start_bytes(start) : 0;

    trib_status_t st = spread(o, root, &bytes, sizeof(bytes));
    if (st == TRIB_OK && bytes < sizeof(*start))
        st = trib_comm_fail(o->fallback_comm, TRIB_ERR_PROTOCOL,
                            "rank %d lacks the result of a sum that it has finished",
                            root);
    if (st == TRIB_OK && !mine)
        start = malloc(bytes);
    if (st == TRIB_OK && !start)
        st = trib_comm_fail(o->fallback_comm, TRIB_ERR_NO_MEMORY,
                            "no memory for the result of a sum");
    if (st == TRIB_OK)
        st = spread(o, root, start, bytes);
    if (st == TRIB_OK && !trib_quorum_valid(start, bytes, ranks_of(o)))
        st = trib_comm_fail(o->fallback_comm, TRIB_ERR_PROTOCOL,
                            "rank %d sent an invalid result of a sum", root);
    if (st != TRIB_OK && !mine)
        free(start);
    *start_out = st == TRIB_OK ? start : NULL;
    return st;
}

/* Take ownership of a result that other ranks have ended. If this rank has not begun
 * the start, keep the result until then. */
static trib_status_t take(struct trib_offload *o, struct trib_quorum_start *start)
{
    struct trib_offload_plan *p = pending_at(o, start->number);

    if (start->number > o->started) {
        struct trib_committed_start *k = make_committed(start);
        if (!k)
            return trib_comm_fail(o->fallback_comm, TRIB_ERR_NO_MEMORY,
                                  "no memory for the result of a sum");
        append(&o->ahead, k);
        return TRIB_OK;
    }
    if (!p || !p->open) {
        free(start);
        return TRIB_OK;
    }
    if (!trib_quorum_of_run(start, &p->inner->run)) {
        free(start);
        return trib_comm_fail(o->fallback_comm, TRIB_ERR_MISMATCH,
                              "ranks disagree on offloaded operation %llu",
                              (unsigned long long)p->seq);
    }
    p->begun = p->inner->run.now.step != p->step_before;
    if (p->begun)
        trib_quorum_undo(&p->inner->comm->engine, &p->inner->run, start);
    p->pending_result = start;
    trib_start_log_remove(p);
    return TRIB_OK;
}

trib_status_t trib_offload_quorum_spread(struct trib_offload *o, uint64_t done,
                                         uint64_t ended, struct trib_comm **by_out)
{
    const int size = ranks_of(o), rank = o->parent->engine.rank;
    const int64_t say[TRIB_AGREE_WORDS] = {[TRIB_AGREE_HAS] =
                                               o->ended == ended ? size - rank : 0};

    assert(done < ended);
    *by_out = o->control_comm;
    trib_status_t st = trib_agreement_run(o, say);
    const int root = size - (int)o->agreed[TRIB_AGREE_HAS];
    *by_out = st == TRIB_OK ? o->fallback_comm : o->control_comm;
    for (uint64_t n = done + 1; n <= ended && st == TRIB_OK; n++) {
        struct trib_quorum_start *start;
        st = exchange(o, root, n, &start);
        if (st == TRIB_OK && rank != root)
            st = take(o, start);
    }
    return st;
}

bool trib_offload_quorum_start_committed(struct trib_offload_plan *p)
{
    struct trib_offload *o = p->offload;
    struct trib_committed_start *k = o->ahead;

    if (!k)
        return false;
    assert(k->start->number == o->started + 1);
    p->seq = ++o->started;
    p->open = true;
    p->begun = false;
    p->pending_result = k->start;
    o->ahead = k->next;
    free(k);
    return true;
}

static bool fits(const struct trib_offload_plan *p)
{
    return p->pending_result->count == p->desc.count &&
           p->pending_result->element == trib_dtype_size(p->desc.dtype) &&
           trib_feedback_of(&p->inner->run)->residual;
}

void trib_offload_quorum_deliver(struct trib_offload_plan *p)
{
    struct trib_offload *o = p->offload;
    trib_status_t st = TRIB_OK;

    assert(p->pending_result && p->open && !p->pending);
    if (fits(p))
        trib_quorum_deliver(&p->inner->comm->engine, &p->inner->run, p->pending_result,
                            p->send, p->recv, p->begun);
    else
        st = trib_comm_fail(
            o->parent, TRIB_ERR_MISMATCH,
            "ranks disagree on offloaded operation %llu: the others have "
            "summed %llu elements, this rank started a plan of %zu",
            (unsigned long long)p->seq, (unsigned long long)p->pending_result->count,
            p->desc.count);
    if (st == TRIB_OK)
        trib_quorum_absent(p->pending_result, ranks_of(o), p->absent);
    free(p->pending_result);
    p->pending_result = NULL;
    trib_offload_plan_close(p, st);
}

void trib_start_log_pop_to(struct trib_offload *o, uint64_t seq)
{
    trib_offload_quorum_end_all(o); /* every rank must start every barrier */
    if (seq > o->committed)
        o->committed = seq;
    while (o->oldest && o->oldest->seq <= seq)
        trib_start_log_pop(o, TRIB_OK);
    trib_offload_quorum_forget(o, false);
}

void trib_offload_collect_commits(struct trib_offload *o)
{
    for (struct trib_offload_plan *p = o->plans; p; p = p->next)
        if (p->commit && p->committed_upto > o->committed &&
            trib_offload_inner_succeeded(p->commit))
            trib_start_log_pop_to(o, p->committed_upto);
    trib_start_log_pop_to(o, o->committed);
}
