/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/fallback.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload/agg_tree.h"
#include "offload/offload_plan.h"
#include "pipeline/payload/undo_log.h"

/* Barriers that are under way come to nothing; of a rank that goes on none is awaited
 * any more. */
static void stop_confirms(struct trib_offload *v)
{
    struct trib_comm *confirms = v->confirms;

    if (!confirms)
        return;
    trib_progress_thread_stop(confirms);
    if (confirms->engine.head)
        trib_engine_fail(&confirms->engine, TRIB_ERR_ABORTED, "the service is left");
}

static void dispose_channel(struct trib_offload *v)
{
    struct trib_comm *channel = v->channel, *confirms = v->confirms;

    stop_confirms(v);
    trib_offload_quorum_drop_barriers(v);
    v->channel = v->confirms = NULL;
    if (channel)
        trib_agg_comm_dispose(channel);
    if (confirms)
        trib_comm_dispose(confirms);
}

static void forget(struct trib_offload *v)
{
    struct trib_comm *comm = v->home;

    if (v->way.free)
        v->way.free(v->way.arg);
    trib_offload_quorum_drop(v);
    free(v);
    comm->offload = NULL;
    comm->hooks = NULL;
    comm->engine.aside = NULL;
}

void trib_offload_drop(struct trib_comm *comm)
{
    struct trib_offload *v = comm->offload;

    dispose_channel(v);
    trib_agreement_close(v);
    trib_comm_dispose(v->control_comm);
    trib_comm_dispose(v->spare);
    forget(v);
}

/* Recovery ------------------------------------------------------------------------- */

/* How far all ranks are, and have all done; said has more. */
static trib_status_t agree(struct trib_offload *v)
{
    const int64_t say[TRIB_AGREE_WORDS] = {
        [TRIB_AGREE_COMMITTED] = (int64_t)v->confirmed,
        [TRIB_AGREE_STARTED] = (int64_t)v->started,
        [TRIB_AGREE_LEAVING] = v->leaving,
        [TRIB_AGREE_LOST] = trib_offload_lost(v),
        [TRIB_AGREE_ENDED] = (int64_t)v->ended,
    };

    return trib_agreement_run(v, say);
}

/* That failed as well: a rank is lost, and the communicator with it. */
void trib_offload_give_up(struct trib_offload *v, const struct trib_comm *by,
                          trib_status_t st)
{
    char text[sizeof(v->home->err.text)];

    snprintf(text, sizeof(text), "%s", trib_last_error(by));
    v->broken = st;
    if (!v->in_home)
        trib_comm_lock(v->home);
    trib_engine_fail(&v->home->engine, st, text);
    if (!v->in_home)
        trib_comm_unlock(v->home);
    while (v->oldest)
        trib_start_log_pop(v, st);
    for (struct trib_offload_plan *s = v->first; s; s = s->next)
        trib_offload_plan_close(s, st);
    if (v->way.lost)
        v->way.lost(v->way.arg);
}

/* What the channel has not done, the spare does. */
static trib_status_t move_to_spare(struct trib_offload *v, uint64_t done)
{
    trib_status_t st = TRIB_OK;

    while (v->oldest && v->oldest->ordinal <= done)
        trib_start_log_pop(v, TRIB_OK);
    for (struct trib_offload_plan *s = v->oldest; s; s = s->newer)
        if (s->now->run.step != s->step_before)
            trib_keep_restore(&s->now->run);
    v->confirmed = done;
    trib_offload_quorum_forget(v, true);
    for (struct trib_offload_plan *s = v->first; s && st == TRIB_OK; s = s->next)
        if (!s->now || s->now->comm != v->spare) /* it may not have come to the
                                                  * channel */
            st = trib_offload_plan_move(s, v->spare);
    for (struct trib_offload_plan *s = v->oldest; s && st == TRIB_OK; s = s->newer)
        st = trib_offload_plan_restart(s);
    return st;
}

static void say_what_happened(const struct trib_offload *v, uint64_t done)
{
    uint64_t pending = 0;

    for (struct trib_offload_plan *s = v->oldest; s; s = s->newer)
        pending += s->ordinal > done;
    if (v->said[TRIB_AGREE_LEAVING])
        trib_log(
            &v->home->log, TRIB_LOG_INFO, TRIB_OFFLOAD_LOG,
            "more services can be had: the ranks leave these after operation %" PRIu64
            ", %" PRIu64 " operation%s of this one %s done again",
            done, pending, pending == 1 ? "" : "s", pending == 1 ? "is" : "are");
    else
        trib_log(&v->home->log, TRIB_LOG_WARN, TRIB_OFFLOAD_LOG,
                 "%s; the ranks go on without the service, %" PRIu64
                 " operations of this one are done again",
                 trib_last_error(v->channel), pending);
}

/* What ranks have said of the channel that some, or all, have lost. */
static trib_status_t settle(struct trib_offload *v, uint64_t *done_out,
                            struct trib_comm **by_out)
{
    const uint64_t done = (uint64_t)v->said[TRIB_AGREE_COMMITTED];
    const uint64_t ended = (uint64_t)v->said[TRIB_AGREE_ENDED];

    *done_out = ended > done ? ended : done;
    return ended > done ? trib_offload_quorum_spread(v, done, ended, by_out) : TRIB_OK;
}

void trib_offload_recover(struct trib_offload *v)
{
    struct trib_comm *by = v->control_comm;
    uint64_t done;

    if (!v->channel || v->recovering)
        return;
    v->recovering = true;
    trib_progress_thread_stop(v->channel);
    trib_offload_collect_commits(v);
    trib_offload_quorum_end_all(v);
    trib_status_t st = agree(v);
    if (st == TRIB_OK) {
        v->ask_at = v->way.open ? (uint64_t)v->said[TRIB_AGREE_STARTED] + 1 : 0;
        say_what_happened(v, (uint64_t)v->said[TRIB_AGREE_COMMITTED]);
        st = settle(v, &done, &by);
    }
    stop_confirms(v);
    if (st == TRIB_OK) {
        by = v->spare;
        st = move_to_spare(v, done);
    }
    v->leaving = false;
    v->recovering = false;
    if (st != TRIB_OK) { /* plans that have not left the channel are there until they
                          * are freed */
        trib_offload_give_up(v, by, st);
        return;
    }
    dispose_channel(v);
    if (v->way.lost)
        v->way.lost(v->way.arg);
}

void trib_offload_leave(struct trib_offload *v)
{
    v->leaving = true;
    trib_comm_lock(v->channel);
    trib_engine_fail(&v->channel->engine, TRIB_ERR_ABORTED, "more services can be had");
    trib_comm_unlock(v->channel);
}

/*
 * One agreement, whether the channel failed or not: a rank that is here may be awaited
 * by ranks for whom it failed, and what all ranks say to the control_comm must be the
 * same. It may have results that they have not.
 */
trib_status_t trib_offload_detach(struct trib_comm *comm)
{
    struct trib_offload *v = comm->offload;
    struct trib_comm *by = v->control_comm;
    trib_status_t st = TRIB_OK;
    uint64_t done;

    if (comm->engine.failed) /* nobody to agree with */
        v->broken = comm->engine.failed;
    if (!v->broken && v->channel) {
        trib_progress_thread_stop(v->channel);
        st = agree(v);
        if (st == TRIB_OK && v->said[TRIB_AGREE_LOST])
            st = settle(v, &done, &by);
    } else if (!v->broken && v->asking) {
        st = trib_agreement_wait(v);
    }
    if (st != TRIB_OK)
        trib_offload_give_up(v, by, st);
    dispose_channel(v);
    trib_agreement_close(v);
    if (comm->engine.failed) {
        trib_comm_dispose(v->control_comm);
        trib_comm_dispose(v->spare);
    } else {
        const trib_status_t left = trib_free_comm(v->control_comm);
        st = trib_free_comm(v->spare);
        st = st == TRIB_OK ? left : st;
    }
    forget(v);
    return st;
}

/* With its lock. */
static void drive(struct trib_engine *e)
{
    if (trib_engine_progress(e))
        trib_engine_awake(e);
    else
        (void)trib_engine_look(e);
}

void trib_offload_poll(struct trib_comm *comm)
{
    struct trib_offload *v = comm->offload;

    if (!v->channel || v->recovering || v->broken)
        return;
    if (v->way.look)
        v->way.look(v->way.arg);
    if (!v->channel->engine.failed && trib_comm_try_lock(v->channel)) {
        drive(&v->channel->engine);
        trib_agreement_look(v);
        trib_comm_unlock(v->channel);
    }
    if (v->confirms && trib_comm_try_lock(v->confirms)) {
        if (v->confirms->engine.head)
            drive(&v->confirms->engine);
        trib_comm_unlock(v->confirms);
    }
    if (trib_offload_lost(v))
        trib_offload_recover(v);
}

void trib_offload_forget_in_child(struct trib_comm *comm)
{
    struct trib_offload *v = comm->offload;

    if (v->channel)
        trib_comm_drop_copy(v->channel);
    trib_offload_quorum_drop_barriers(v);
    trib_offload_quorum_drop(v);
    if (v->confirms)
        trib_comm_drop_copy(v->confirms);
    trib_plan_destroy(v->agreement);
    trib_comm_drop_copy(v->control_comm);
    trib_comm_drop_copy(v->spare);
    free(v);
}
