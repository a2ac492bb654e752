/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx: progress for an owner that does not poll. UCX sends only while somebody makes
 * its progress: a large message waits at its sender until the receiver has asked for
 * it, and a small one where the socket is full. An owner that is done with an operation
 * may compute, or wait in another communicator, while a peer waits for that message.
 *
 * The thread of the heartbeats looks every TRIB_HEARTBEAT_SOON_MS, as long as UCX may
 * keep something. If the owner has not polled since the last look, it makes UCX's
 * progress in its place until UCX has sent all.
 */
#include "base/time.h"
#include "transport/common/heartbeat.h"
#include "transport/ucx/ucx.h"

enum { TURN_MS = 5 }; /* the heartbeats wait meanwhile */

/* Under `lock`. An error is that of an endpoint, whose handler tells it. */
static void begin_flush(struct ucx *u)
{
    const ucp_request_param_t none = {0};

    for (int i = 0; i < u->size; i++) {
        struct ucx_peer *p = &u->peers[i];
        ucs_status_ptr_t request = p->ep && p->fault == UCS_OK
                                       ? u->api.ucp_ep_flush_nbx(p->ep, &none)
                                       : NULL;
        p->flush = UCS_PTR_IS_PTR(request) ? request : NULL;
    }
    u->flushing = u->unflushed;
}

/* Under `lock`: have the requests ended? */
static bool flush_has_ended(struct ucx *u)
{
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

/* Under `lock`: may UCX keep anything of this rank's, or of an answer to a peer? */
static bool is_unfinished(struct ucx *u)
{
    for (int i = 0; i < u->size; i++)
        if (u->peers[i].pending > 0)
            return true;
    if (!u->flushing)
        begin_flush(u);
    if (!flush_has_ended(u))
        return true;
    const bool all = u->flushing == u->unflushed; /* none was written meanwhile */
    u->flushing = 0;
    return !all;
}

/* One turn of progress; *more_out: something moved, so the next turn may move more.
 * True if UCX may still keep something. */
static bool move_on(struct ucx *u, bool *more_out)
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
        unfinished = move_on(u, &more);
        moved |= more;
    }
    if (moved)
        trib_ucx_ring(u); /* messages of peers may have come, too */
    return unfinished;
}

void trib_ucx_helper_open(struct ucx *u)
{
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
