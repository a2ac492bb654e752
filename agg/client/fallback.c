/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/client/fallback.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agg/client/agg_tree.h"
#include "agg/client/offload_gate.h"
#include "agg/client/offload_plan.h"
#include "comm/core/comm_lock.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/core/progress_thread.h"
#include "comm/members/leave.h"
#include "comm/plan/plan_make.h"
#include "pipeline/payload/undo_log.h"

/* Abort the barriers in flight: after the recovery no rank waits for them. */
static void stop_commit_comm(struct trib_offload *o)
{
    struct trib_comm *commit_comm = o->commit_comm;

    if (!commit_comm)
        return;
    trib_progress_thread_stop(commit_comm);
    if (commit_comm->engine.head)
        trib_engine_fail(&commit_comm->engine, TRIB_ERR_ABORTED,
                         "the ranks have abandoned the aggregators");
}

static void dispose_agg_comm(struct trib_offload *o)
{
    struct trib_comm *agg_comm = o->agg_comm, *commit_comm = o->commit_comm;

    stop_commit_comm(o);
    trib_offload_quorum_drop_barriers(o);
    o->agg_comm = o->commit_comm = NULL;
    if (agg_comm)
        trib_agg_comm_dispose(agg_comm);
    trib_comm_dispose_dup(commit_comm, o->parent);
}

/* Notify lost ranks, which may still run, that the job continues without them. Some are
 * connected only on `dup`. */
static void notify_lost(struct trib_comm *dup, const bool *lost)
{
    struct trib_engine *e = &dup->engine;
    bool *which = calloc((size_t)e->size, sizeof(*which));

    trib_comm_lock(dup);
    for (int r = 0; which && r < e->size; r++)
        which[r] = lost[r] && e->links[r].lost;
    if (which)
        e->transport->ops->leave(e->transport, which);
    trib_comm_unlock(dup);
    free(which);
}

void trib_offload_continues(struct trib_comm *comm, const bool *lost)
{
    notify_lost(comm->offload->fallback_comm, lost);
    notify_lost(comm->offload->control_comm, lost);
}

static void forget(struct trib_offload *o)
{
    struct trib_comm *comm = o->parent;

    assert(comm->offload == o && !o->agg_comm && !o->commit_comm);
    if (o->provider.free)
        o->provider.free(o->provider.arg);
    trib_offload_quorum_drop(o);
    pthread_mutex_destroy(&o->gate);
    free(o);
    comm->offload = NULL;
    comm->hooks = NULL;
    comm->engine.idle_hook = NULL;
}

void trib_offload_drop(struct trib_comm *comm)
{
    struct trib_offload *o = comm->offload;

    dispose_agg_comm(o);
    trib_agreement_close(o);
    trib_comm_dispose_dup(o->control_comm, comm);
    trib_comm_dispose_dup(o->fallback_comm, comm);
    forget(o);
}

/* Recovery ------------------------------------------------------------------------- */

/* Agree on the progress of all ranks: o->agreed. */
static trib_status_t agree(struct trib_offload *o)
{
    const int64_t say[TRIB_AGREE_WORDS] = {
        [TRIB_AGREE_COMMITTED] = (int64_t)o->committed,
        [TRIB_AGREE_STARTED] = (int64_t)o->started,
        [TRIB_AGREE_LEAVING] = o->leaving,
        [TRIB_AGREE_LOST] = trib_offload_lost(o),
        [TRIB_AGREE_ENDED] = (int64_t)o->ended,
    };

    return trib_agreement_run(o, say);
}

/* fallback_comm or control_comm has failed too: a rank is lost, and the parent has
 * failed. */
void trib_offload_fail(struct trib_offload *o, const struct trib_comm *by,
                       trib_status_t st)
{
    char text[sizeof(o->parent->err.text)];

    assert(st != TRIB_OK && by);
    snprintf(text, sizeof(text), "%s", trib_last_error(by));
    o->broken = st;
    trib_comm_lock(o->parent);
    trib_engine_note_lost(&o->parent->engine, by->engine.cause_lost);
    trib_engine_know_like(&o->parent->engine, &by->engine);
    trib_comm_unlock(o->parent);
    trib_comm_fail_all(o->parent, st, text);
    while (o->oldest)
        trib_start_log_pop(o, st);
    for (struct trib_offload_plan *p = o->plans; p; p = p->next)
        trib_offload_plan_close(p, st);
    if (o->provider.lost)
        o->provider.lost(o->provider.arg);
}

/* Restart all starts after `done` on fallback_comm, and move all plans there. */
static trib_status_t move_to_fallback(struct trib_offload *o, uint64_t done)
{
    trib_status_t st = TRIB_OK;

    while (o->oldest && o->oldest->seq <= done)
        trib_start_log_pop(o, TRIB_OK);
    for (struct trib_offload_plan *p = o->oldest; p; p = p->newer)
        if (p->inner->run.now.step != p->step_before)
            trib_undo_rollback(&p->inner->run);
    o->committed = done;
    trib_offload_quorum_forget(o, true);
    for (struct trib_offload_plan *p = o->plans; p && st == TRIB_OK; p = p->next)
        if (!p->inner ||
            p->inner->comm != o->fallback_comm) /* it never was on agg_comm */
            st = trib_offload_plan_move(p, o->fallback_comm);
    for (struct trib_offload_plan *p = o->oldest; p && st == TRIB_OK; p = p->newer)
        st = trib_offload_plan_restart(p);
    return st;
}

static void log_recovery(const struct trib_offload *o, uint64_t done)
{
    uint64_t pending = 0;

    for (struct trib_offload_plan *p = o->oldest; p; p = p->newer)
        pending += p->seq > done;
    if (o->agreed[TRIB_AGREE_LEAVING])
        trib_log(
            &o->parent->log, TRIB_LOG_INFO, TRIB_OFFLOAD_LOG,
            "more aggregators are available: the ranks move to them after operation "
            "%" PRIu64 "; this rank repeats %" PRIu64 " operation%s",
            done, pending, pending == 1 ? "" : "s");
    else
        trib_log(&o->parent->log, TRIB_LOG_WARN, TRIB_OFFLOAD_LOG,
                 "%s; the ranks continue without aggregators, and this rank repeats "
                 "%" PRIu64 " operation%s",
                 trib_last_error(o->agg_comm), pending, pending == 1 ? "" : "s");
}

/* If any rank has ended starts that are not committed, send their results to all ranks.
 * *done_out is the newest start that is then done on all ranks. */
static trib_status_t spread_results(struct trib_offload *o, uint64_t *done_out,
                                    struct trib_comm **by_out)
{
    const uint64_t done = (uint64_t)o->agreed[TRIB_AGREE_COMMITTED];
    const uint64_t ended = (uint64_t)o->agreed[TRIB_AGREE_ENDED];

    assert(o->committed <= done);
    *done_out = ended > done ? ended : done;
    return ended > done ? trib_offload_quorum_spread(o, done, ended, by_out) : TRIB_OK;
}

void trib_offload_recover(struct trib_offload *o)
{
    struct trib_comm *by = o->control_comm;
    uint64_t done;

    if (!o->agg_comm || o->recovering)
        return;
    assert(!o->broken && o->fallback_comm);
    o->recovering = true;
    trib_offload_await_none(o);
    trib_progress_thread_stop(o->agg_comm);
    trib_offload_collect_commits(o);
    trib_offload_quorum_end_all(o);
    trib_status_t st = agree(o);
    if (st == TRIB_OK) {
        o->next_poll_seq =
            o->provider.open ? (uint64_t)o->agreed[TRIB_AGREE_STARTED] + 1 : 0;
        log_recovery(o, (uint64_t)o->agreed[TRIB_AGREE_COMMITTED]);
        st = spread_results(o, &done, &by);
    }
    stop_commit_comm(o);
    if (st == TRIB_OK) {
        by = o->fallback_comm;
        st = move_to_fallback(o, done);
    }
    o->leaving = false;
    o->recovering = false;
    if (st != TRIB_OK) { /* plans may stay on agg_comm until they are freed */
        trib_offload_fail(o, by, st);
        return;
    }
    dispose_agg_comm(o);
    if (o->provider.lost)
        o->provider.lost(o->provider.arg);
}

void trib_offload_leave(struct trib_offload *o)
{
    assert(o->agg_comm && o->parent->engine.rank == 0);
    o->leaving = true;
    trib_comm_lock(o->agg_comm);
    trib_engine_fail(&o->agg_comm->engine, TRIB_ERR_ABORTED,
                     "more aggregators are available");
    trib_comm_unlock(o->agg_comm);
}

/* Always take part in one agreement: all ranks must run the same ones, and ranks whose
 * agg_comm has failed may wait for this rank. It may also have results that others
 * lack. */
trib_status_t trib_offload_detach(struct trib_comm *comm)
{
    struct trib_offload *o = comm->offload;
    struct trib_comm *by = o->control_comm;
    trib_status_t st = TRIB_OK;
    uint64_t done;

    assert(!o->plans && !o->oldest);
    if (comm->engine.failed) /* agreements have failed, too */
        o->broken = comm->engine.failed;
    if (!o->broken && o->agg_comm) {
        trib_progress_thread_stop(o->agg_comm);
        st = agree(o);
        if (st == TRIB_OK && o->agreed[TRIB_AGREE_LOST])
            st = spread_results(o, &done, &by);
    } else if (!o->broken && o->polling) {
        st = trib_agreement_wait(o);
    }
    if (st != TRIB_OK)
        trib_offload_fail(o, by, st);
    dispose_agg_comm(o);
    trib_agreement_close(o);
    if (comm->engine.failed) {
        trib_comm_dispose_dup(o->control_comm, comm);
        trib_comm_dispose_dup(o->fallback_comm, comm);
    } else {
        const trib_status_t left = trib_free_comm(o->control_comm);
        st = trib_free_comm(o->fallback_comm);
        st = st == TRIB_OK ? left : st;
    }
    forget(o);
    return st;
}

static void poll(struct trib_offload *o)
{
    if (o->provider.check)
        o->provider.check(o->provider.arg);
    if (!o->agg_comm->engine.failed && trib_comm_try_lock(o->agg_comm)) {
        trib_engine_drive(&o->agg_comm->engine);
        trib_agreement_check(o);
        trib_comm_unlock(o->agg_comm);
    }
    if (o->commit_comm && trib_comm_try_lock(o->commit_comm)) {
        if (o->commit_comm->engine.head)
            trib_engine_drive(&o->commit_comm->engine);
        trib_comm_unlock(o->commit_comm);
    }
    if (trib_offload_lost(o))
        trib_offload_recover(o);
}

void trib_offload_poll(struct trib_comm *comm)
{
    struct trib_offload *o = comm->offload;

    if (!trib_offload_gate_try(o))
        return; /* the thread inside the gate polls */
    if (o->agg_comm && !o->recovering && !o->broken)
        poll(o);
    trib_offload_gate_leave(o);
}

void trib_offload_free_in_child(struct trib_comm *comm)
{
    struct trib_offload *o = comm->offload;

    if (o->agg_comm)
        trib_comm_drop_copy(o->agg_comm);
    trib_offload_quorum_drop_barriers(o);
    trib_offload_quorum_drop(o);
    if (o->commit_comm)
        trib_comm_drop_copy(o->commit_comm);
    trib_plan_destroy(o->agreement);
    trib_comm_drop_copy(o->control_comm);
    trib_comm_drop_copy(o->fallback_comm);
    free(o);
}
