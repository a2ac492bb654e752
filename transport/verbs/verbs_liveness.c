/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: loss of peers and disconnecting.
 *
 * When a process ends, its connections end and the peers' managers see that. When a
 * host falls silent, writes to it fail. A stopped process shows neither sign, because
 * its adapter still acknowledges. So each peer is also watched (peer_liveness.h), which
 * covers peers without traffic, too.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "base/time.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/verbs_cache.h"

enum {
    IN_FLIGHT_MS = 50, /* for data in flight from a dead peer */
    ANSWER_MS = 1000, /* for an answer from a peer that refused a request and whose
                     * connection ended */
    DYING_MS = 3000, /* for any sign of a peer that refused a request: a process may
                      * take long to exit */
    CHECK_MS = 5, /* interval between checks for such signs */
    LEAVE_MS = 200, /* for requests posted to one peer to complete */
    LAST_MS = 1200, /* the same, to all peers at the end: time for two
                     * retransmissions, which come every 0.5 s by default */
    NOTICE_MS = 20, /* for the abort notice to reach the peer's device */
    STOP_MS = 10, /* for the device to fail the requests of a stopped outlet */
};

#define NS_PER_MS UINT64_C(1000000)

/* Handle the async events recorded by the manager. If the manager is busy with a
 * request, leave them to the next poll. */
void trib_verbs_handle_async_events(struct verbs *v)
{
    if (pthread_mutex_trylock(&v->links) != 0)
        return;
    atomic_store_explicit(&v->async_events, false, memory_order_relaxed);
    for (int i = 0; i < v->size; i++) {
        struct verbs_peer *p = &v->peers[i];
        if (*p->fault)
            trib_verbs_lose_peer(v, i, "process %d: %s", p->base.who.pid, p->fault);
        else if (p->gone && p->unclear == VERBS_REFUSED && !p->got_disconnect)
            p->ended = true; /* the cause is still unknown */
        else if (p->gone && p->base.state == TRIB_PEER_CONNECTED) {
            p->broken = true;
            trib_verbs_lose_peer(v, i, "process %d closed its connection",
                                 p->base.who.pid);
        } else if (p->gone) {
            trib_verbs_lose_peer(v, i, "process %d closed its connection",
                                 p->base.who.pid);
        }
    }
    pthread_mutex_unlock(&v->links);
}

void trib_verbs_tick(struct verbs *v)
{
    uint64_t due = trib_peer_liveness_due(&v->stops_at);
    char why[TRIB_WHY_MAX];

    if (due)
        trib_heartbeat_note_away(v->local.heartbeat);
    trib_verbs_cache_tidy(&v->api); /* unmapped memory is pinned until then */
    for (int i = 0; i < v->size; i++) {
        struct verbs_peer *p = &v->peers[i];
        if (p->base.state != TRIB_PEER_CONNECTED)
            continue;
        if (trib_peer_liveness_lost(&p->base.liveness, due, v->cfg->stop_timeout_ms,
                                    why, sizeof(why))) {
            trib_verbs_lose_peer(v, i, "%s", why);
            p->may_return = !trib_peer_liveness_dead(&p->base.liveness);
        } else if (p->base.liveness.by == TRIB_LIVENESS_BY_HEARTBEAT &&
                   trib_peer_liveness_dead(&p->base.liveness)) {
            trib_verbs_lose_peer(v, i, TRIB_PEER_ENDED, p->base.who.pid);
        }
    }
}

/*
 * End both connections and refuse further ones. Their objects are destroyed later: on a
 * dead port the kernel may take seconds, and the loss must be reported first.
 */
void trib_verbs_sever_peer(struct verbs *v, int peer, enum trib_peer_state state)
{
    struct verbs_peer *p = &v->peers[peer];
    struct verbs_link links[2];

    assert(state == TRIB_PEER_LOST || state == TRIB_PEER_LEFT);
    p->base.state = state;
    trib_spin_lock(&v->posting);
    p->qp = NULL;
    trib_verbs_forget_requests(v, peer);
    trib_spin_unlock(&v->posting);
    pthread_mutex_lock(&v->links);
    p->closed = true;
    links[0] = p->out;
    links[1] = p->in;
    memset(&p->out, 0, sizeof(p->out));
    memset(&p->in, 0, sizeof(p->in));
    for (int i = 0; i < 2; i++) {
        if (links[i].qp)
            trib_verbs_route_remove(v, links[i].qp->qp_num);
    }
    pthread_mutex_unlock(&v->links);
    for (int i = 0; i < 2; i++) {
        if (!links[i].qp && !links[i].id)
            continue;
        trib_verbs_link_sever(v, &links[i]);
        p->severed[i] = links[i];
    }
    p->disconnect_pending = false;
    trib_peer_liveness_end(&p->base.liveness);
}

static void destroy_severed(struct verbs *v, int peer)
{
    assert(v->peers[peer].base.state == TRIB_PEER_LEFT);
    for (int i = 0; i < 2; i++)
        trib_verbs_link_drop(v, &v->peers[peer].severed[i]);
}

/* Return true once it is known whether a peer whose device refused a request has
 * died. */
static bool resolve_refusal(struct verbs *v, int peer, uint64_t now)
{
    struct verbs_peer *p = &v->peers[peer];

    assert(p->unclear == VERBS_REFUSED);
    if (p->base.liveness.by != TRIB_LIVENESS_BY_NOBODY &&
        now - p->checked_at < CHECK_MS * NS_PER_MS)
        return false;
    p->checked_at = now;
    bool late = now - p->base.going_at > DYING_MS * NS_PER_MS;
    bool mute = p->base.liveness.by == TRIB_LIVENESS_BY_HEARTBEAT && p->ended &&
                now - p->base.going_at > ANSWER_MS * NS_PER_MS;
    bool lives = trib_peer_liveness_answered(&p->base.liveness, p->question);
    bool dead = !lives && (mute || trib_peer_liveness_dead(&p->base.liveness));
    if (!dead && !lives && !late && p->base.liveness.by != TRIB_LIVENESS_BY_NOBODY)
        return false;
    if (dead)
        trib_verbs_lose_peer(v, peer, TRIB_PEER_ENDED, p->base.who.pid);
    else
        trib_verbs_report_error(v, peer, p->status, p->vendor);
    p->unclear = VERBS_CLEAR;
    return true;
}

/* Return true if the loss of a peer can be reported. */
static bool can_report(struct verbs *v, int peer)
{
    struct verbs_peer *p = &v->peers[peer];
    uint64_t now = trib_now_ns();

    assert(p->base.state == TRIB_PEER_DRAINING);
    if (p->finished)
        return true;
    return now - p->base.going_at > IN_FLIGHT_MS * NS_PER_MS &&
           (p->unclear != VERBS_REFUSED || resolve_refusal(v, peer, now));
}

/* Writes may fail before a peer's death is noticed: report the death as the cause. */
static void explain_loss(struct verbs_peer *p)
{
    if (p->got_disconnect || p->base.given_up ||
        trib_peer_liveness_answered(&p->base.liveness, p->question) ||
        !trib_peer_liveness_dead(&p->base.liveness))
        return;
    trib_peer_explain(&p->base,
                      p->base.liveness.by == TRIB_LIVENESS_BY_KERNEL
                          ? "process %d has died"
                          : TRIB_PEER_ENDED,
                      p->base.who.pid);
}

/*
 * Find out which unsignalled writes to a lost peer are complete: once its outlet is
 * stopped, the device fails all others, in order. Return true if writes are to be
 * reported before the loss.
 */
static bool settle_writes(struct verbs *v, int peer)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct verbs_peer *p = &v->peers[peer];

    if (!p->qp || p->stopped || p->may_return || p->asked_head == p->asked_tail ||
        verbs_sends_done(p))
        return false;
    p->stopped = true;
    (void)v->api.ibv_modify_qp(p->qp, &attr, IBV_QP_STATE);
    if (trib_verbs_post_probe(v, peer))
        trib_verbs_drain(v, peer, trib_deadline_ms(STOP_MS));
    return v->completed;
}

/*
 * Stop the inlet of a peer that may return. Its device repeats what ours has not
 * acknowledged, but nothing else, so all that was acknowledged before must be reported
 * before the loss. Return true if it may still be in the completion queue.
 */
static bool stop_inlet(struct verbs *v, int peer)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct verbs_peer *p = &v->peers[peer];

    if (!p->broken || p->in_stopped)
        return false;
    p->in_stopped = true;
    pthread_mutex_lock(&v->links);
    const bool had = p->in.qp != NULL;
    if (had)
        (void)v->api.ibv_modify_qp(p->in.qp, &attr, IBV_QP_STATE);
    pthread_mutex_unlock(&v->links);
    return had;
}

/* Report a lost peer after all its writes. */
int trib_verbs_report_losses(struct verbs *v, struct trib_event *events, int max)
{
    int n = 0;

    for (int i = 0; i < v->size && n < max && v->n_losing; i++) {
        struct verbs_peer *p = &v->peers[i];
        if (p->base.state != TRIB_PEER_DRAINING || !can_report(v, i) ||
            stop_inlet(v, i) || settle_writes(v, i))
            continue;
        explain_loss(p);
        trib_peer_report(&p->base, i, p->got_disconnect, &events[n]);
        events[n++].broken = p->broken && !p->got_disconnect && !p->base.given_up &&
                             !trib_peer_liveness_dead(&p->base.liveness);
        events[n - 1].final = verbs_device_end(v) != NULL;
        if (p->may_return) {
            trib_verbs_send_last(v, i, VERBS_GIVEN_UP);
            trib_verbs_drain(v, i, trib_deadline_ms(NOTICE_MS));
        }
        trib_verbs_sever_peer(v, i, TRIB_PEER_LOST);
        assert(v->n_losing > 0);
        v->n_losing--;
    }
    return n;
}

static void refuse_requests(struct verbs *v, int first, int last)
{
    assert(first >= 0 && last < v->size);
    pthread_mutex_lock(&v->links);
    for (int i = first; i <= last; i++)
        v->peers[i].closed = true;
    pthread_mutex_unlock(&v->links);
}

void trib_verbs_disconnect(struct trib_transport *t, int peer)
{
    struct verbs *v = verbs_of(t);

    if (peer < 0 || peer >= v->size || v->peers[peer].base.state == TRIB_PEER_LEFT ||
        !verbs_is_ours(v))
        return;
    trib_verbs_end_revival(v, peer);
    struct verbs_peer *p = &v->peers[peer];
    refuse_requests(v, peer, peer);
    if (p->base.state == TRIB_PEER_DRAINING)
        v->n_losing--;
    if (trib_peer_is_there(&p->base)) {
        trib_verbs_send_last(v, peer, VERBS_DISCONNECT);
        trib_verbs_drain(v, peer, trib_deadline_ms(LEAVE_MS));
    }
    trib_verbs_sever_peer(v, peer, TRIB_PEER_LEFT);
    destroy_severed(v, peer);
}

/* Disconnect from all peers at once: a large job must not wait for each in turn. */
static void send_disconnects(struct verbs *v, const bool *which, uint64_t until)
{
    for (int i = 0; i < v->size; i++) {
        if ((!which || which[i]) && trib_peer_is_there(&v->peers[i].base))
            trib_verbs_send_last(v, i, VERBS_DISCONNECT);
    }
    if (!which)
        trib_verbs_drain(v, -1, until);
    for (int i = 0; which && i < v->size; i++) {
        if (which[i] && trib_peer_is_there(&v->peers[i].base))
            trib_verbs_drain(v, i, until);
    }
}

void trib_verbs_leave(struct trib_transport *t, const bool *which)
{
    struct verbs *v = verbs_of(t);

    if (!verbs_is_ours(v))
        return;
    for (int i = 0; i < v->size; i++)
        if (!which || which[i])
            trib_verbs_end_revival(v, i);
    for (int i = 0; i < v->size; i++)
        if (!which || which[i])
            refuse_requests(v, i, i);
    send_disconnects(v, which, trib_deadline_ms(LAST_MS));
    for (int i = 0; i < v->size; i++) {
        if ((which && !which[i]) || v->peers[i].base.state == TRIB_PEER_LEFT)
            continue;
        if (v->peers[i].base.state == TRIB_PEER_DRAINING)
            v->n_losing--;
        trib_verbs_sever_peer(v, i, TRIB_PEER_LEFT);
        destroy_severed(v, i);
    }
}
