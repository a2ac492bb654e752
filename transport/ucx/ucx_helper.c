/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx: progress for an owner that does not poll. UCX sends only while its progress is
 * called. A large message waits at its sender until the receiver has requested it; a
 * small one waits while the socket is full. An owner that has finished an operation may
 * compute, or wait in another communicator, while a peer waits for that message.
 *
 * The heartbeat thread checks every TRIB_HEARTBEAT_SOON_MS while UCX may hold unsent
 * data. If the owner has not polled since the last check, the thread calls progress
 * until UCX has sent everything.
 */
#include "base/time.h"
#include "transport/common/heartbeat.h"
#include "transport/ucx/ucx.h"

enum { TURN_MS = 5 }; /* delays the heartbeats */

/* Ignore errors: they concern one endpoint, whose error handler reports them. Call with
 * `lock` held. */
static void begin_flush(struct ucx *u)
{
    const ucp_request_param_t none = {0};

    assert(ucx_lock_held(u) && !u->flushing);
    for (int i = 0; i < u->size; i++) {
        struct ucx_peer *p = &u->peers[i];
        ucs_status_ptr_t request =
            p->ep && p->fault == UCS_OK ? u->api.ucp_ep_flush_nbx(p->ep, &none) : NULL;
        p->flush = UCS_PTR_IS_PTR(request) ? request : NULL;
    }
    u->flushing = u->unflushed;
}

/* Return true once all flush requests have completed. Call with `lock` held. */
static bool flush_has_ended(struct ucx *u)
{
    assert(ucx_lock_held(u));
    for (int i = 0; i < u->size; i++) {
        struct ucx_peer *p = &u->peers[i];
        if (!p->flush)
            continue;
        if (u->api.ucp_request_check_status(p->flush) == UCS_INPROGRESS)
            return false;
        u->api.ucp_request_free(p->flush);
        p->flush = NULL;
    }
    return true;
}

/* Return true if UCX may hold data of this rank, or an answer to a peer. Call with
 * `lock` held. */
static bool is_unfinished(struct ucx *u)
{
    for (int i = 0; i < u->size; i++)
        if (u->peers[i].pending > 0)
            return true;
    if (!u->flushing)
        begin_flush(u);
    if (!flush_has_ended(u))
        return true;
    const bool all = u->flushing == u->unflushed; /* nothing was written since */
    u->flushing = 0;
    return !all;
}

/* Make progress once. *more_out is set if something moved, so that another call may
 * help. Return true if UCX may still hold data. */
static bool progress_once(struct ucx *u, bool *more_out)
{
    *more_out = false;
    if (pthread_mutex_trylock(&u->lock) != 0)
        return true;
    const bool unfinished = u->asks_help && is_unfinished(u);
    if (unfinished) {
        *more_out = trib_ucx_progress(u) > 0;
    } else {
        u->asks_help = false;
        u->unflushed = 0;
    }
    pthread_mutex_unlock(&u->lock);
    return unfinished;
}

static bool help(void *arg)
{
    struct ucx *u = arg;
    const uint64_t until = trib_deadline_ms(TURN_MS);
    const uint32_t polls = atomic_load_explicit(&u->polls, memory_order_relaxed);
    bool more = polls == u->polls_seen, unfinished = true, moved = false;

    u->polls_seen = polls;
    while (more && unfinished && !trib_deadline_passed(until) &&
           atomic_load_explicit(&u->polls, memory_order_relaxed) == polls) {
        unfinished = progress_once(u, &more);
        moved |= more;
    }
    if (moved)
        trib_ucx_signal_owner(u); /* messages of peers may have arrived, too */
    return unfinished;
}

void trib_ucx_helper_open(struct ucx *u)
{
    assert(!u->is_helped);
    trib_heartbeat_help(u->local.heartbeat, -1, help, u);
    u->is_helped = true;
}

void trib_ucx_helper_close(struct ucx *u)
{
    if (!u->is_helped)
        return;
    trib_heartbeat_help(u->local.heartbeat, -1, NULL, NULL);
    u->is_helped = false;
    for (int i = 0; i < u->size; i++) {
        if (u->peers[i].flush)
            u->api.ucp_request_free(u->peers[i].flush);
        u->peers[i].flush = NULL;
    }
}
