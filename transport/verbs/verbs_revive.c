/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: connecting again to a peer whose connection was lost.
 *
 * The transport "rails" asks for it (multirail_failback.c). Each end destroys its old
 * links, accepts the peer's requests again, and connects. An attempt may take seconds,
 * so a thread makes it, VERBS_REVIVALS at a time for each device. The thread touches
 * only the links of its peer; the owner takes a new outlet into use.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "base/wait.h"
#include "transport/verbs/verbs.h"

enum {
    PAUSE_MS = 100, /* before the first attempt; doubles with each one */
    PAUSE_MAX_MS = 30000,
    PAUSE_LAST_MS = 250, /* at most, if no rail is left */
    ATTEMPT_MS = 1500,
    STABLE_MS =
        60000, /* a connection that lasted so long begins with the first pause */
    PROBE_MS = 1500, /* for an empty write over a connection by GIDs */
    NO_PEER = -1,
};

#define NS_PER_MS UINT64_C(1000000)

/* Destroy the lost connections and accept requests of the peer. */
static void open_again(struct verbs *v, struct verbs_peer *p)
{
    struct verbs_link broken = {0};

    for (int i = 0; i < 2; i++)
        trib_verbs_link_drop(v, &p->severed[i]);
    pthread_mutex_lock(&v->links);
    if (p->gone && p->in.qp) {
        broken = p->in;
        memset(&p->in, 0, sizeof(p->in));
        p->in_established = false;
        trib_verbs_route_remove(v, broken.qp->qp_num);
    }
    p->gone = p->closed = false;
    p->fault[0] = '\0';
    pthread_mutex_unlock(&v->links);
    trib_verbs_link_drop(v, &broken);
}

static void *attempt_main(void *arg)
{
    struct verbs_revival *a = arg;
    struct verbs_peer *p = &a->v->peers[a->peer];

    open_again(a->v, p);
    a->result = trib_verbs_make_outlet(a->v, a->peer, &p->address,
                                       trib_deadline_ms(ATTEMPT_MS));
    atomic_store_explicit(&a->finished, true, memory_order_release);
    return NULL;
}

/* Return the attempt to reach this peer, or one that is not in use for NO_PEER;
 * NULL: there is none. */
static struct verbs_revival *find_attempt(struct verbs *v, int peer)
{
    for (int i = 0; i < VERBS_REVIVALS; i++) {
        struct verbs_revival *a = &v->revivals[i];
        if (peer == NO_PEER ? !a->running : a->running && a->peer == peer)
            return a;
    }
    return NULL;
}

static void pause_attempts(struct verbs_peer *p)
{
    const uint32_t ms = p->pause_ms ? p->pause_ms : PAUSE_MS;

    p->revive_at = trib_deadline_ms((int)ms);
    p->pause_ms = 2 * ms < PAUSE_MAX_MS ? 2 * ms : PAUSE_MAX_MS;
}

/* Forget the state of the old connections. Their requests count as done. */
static void reset_peer(struct verbs *v, int peer)
{
    struct verbs_peer *p = &v->peers[peer];

    p->base.state = TRIB_PEER_UNKNOWN;
    p->base.given_up = false;
    p->got_disconnect = p->finished = p->ended = p->may_return = p->broken = false;
    p->stopped = p->in_stopped = false;
    p->unclear = VERBS_CLEAR;
    p->question = 0;
    p->ahead = 0;
    p->owed = 0;
    trib_verbs_forget_requests(v, peer);
    if (p->revived_at && trib_now_ns() - p->revived_at > STABLE_MS * NS_PER_MS)
        p->pause_ms = 0;
    pause_attempts(p);
}

/* Take the outlet that an attempt has made into use. One by GIDs is proved first. */
static void take_outlet(struct verbs *v, int peer)
{
    struct verbs_peer *p = &v->peers[peer];

    trib_verbs_set_connected(v, peer, &p->address);
    pthread_mutex_lock(&v->links);
    if (p->gone || *p->fault) /* its inlet has ended during the attempt */
        trib_verbs_wake_owner(v);
    pthread_mutex_unlock(&v->links);
    p->revived_at = trib_now_ns();
    p->prove_until = 0;
    if (p->out.by_oob && trib_verbs_post_probe(v, peer))
        p->prove_until = trib_deadline_ms(PROBE_MS);
}

static enum multirail_revival join_attempt(struct verbs *v, struct verbs_revival *a)
{
    static const enum multirail_revival results[] = {
        [VERBS_ATTEMPT_FAILED] = MULTIRAIL_REVIVING,
        [VERBS_ATTEMPT_CONNECTED] = MULTIRAIL_REVIVING, /* to be proved */
        [VERBS_ATTEMPT_NO_LISTENER] = MULTIRAIL_ENDED,
        [VERBS_ATTEMPT_NOT_YET] = MULTIRAIL_NOT_YET,
        [VERBS_ATTEMPT_NEVER] = MULTIRAIL_NEVER,
    };

    trib_verbs_end_revival(v, a->peer);
    if (a->result == VERBS_ATTEMPT_CONNECTED)
        take_outlet(v, a->peer);
    else
        pause_attempts(&v->peers[a->peer]);
    return results[a->result];
}

/* If all attempts are in use, a later call starts this one. */
static void start_attempt(struct verbs *v, int peer)
{
    struct verbs_revival *a = find_attempt(v, NO_PEER);

    assert(!v->peers[peer].out.qp);
    if (!a)
        return;
    a->v = v;
    a->peer = peer;
    a->result = VERBS_ATTEMPT_FAILED;
    atomic_store_explicit(&a->finished, false, memory_order_relaxed);
    a->running = trib_thread_start(&a->thread, attempt_main, a) == 0;
    if (!a->running)
        pause_attempts(&v->peers[peer]);
}

/* Return true if the outlet carries packets, and say so to the peer. If not, the
 * connection has failed, which says nothing of the process: a later attempt may
 * succeed. */
static bool is_proved(struct verbs *v, int peer)
{
    struct verbs_peer *p = &v->peers[peer];

    assert(p->base.state == TRIB_PEER_CONNECTED);
    if (!p->prove_until)
        return true;
    if (!verbs_sends_done(p)) {
        if (!trib_deadline_passed(p->prove_until))
            return false;
        p->broken = true;
        trib_verbs_lose_peer(v, peer, "no RDMA packet gets through");
        return false;
    }
    p->prove_until = 0;
    if (trib_verbs_send_ready(v, peer))
        return true;
    p->broken = true;
    trib_verbs_lose_peer(v, peer, "process %d closed its connection", p->base.who.pid);
    return false;
}

static bool has_inlet(struct verbs *v, const struct verbs_peer *p)
{
    pthread_mutex_lock(&v->links);
    const bool has = p->in.qp && p->in_established && !p->gone;
    pthread_mutex_unlock(&v->links);
    return has;
}

void trib_verbs_sever(struct trib_transport *t, int peer)
{
    struct verbs *v = verbs_of(t);

    assert(peer >= 0 && peer < v->size);
    if (verbs_is_ours(v) && v->peers[peer].base.state == TRIB_PEER_CONNECTED)
        trib_verbs_sever_peer(v, peer, TRIB_PEER_LOST);
}

void trib_verbs_bar(struct trib_transport *t, int peer)
{
    struct verbs *v = verbs_of(t);

    assert(peer >= 0 && peer < v->size);
    if (!verbs_is_ours(v))
        return;
    pthread_mutex_lock(&v->links);
    v->peers[peer].barred = true;
    pthread_mutex_unlock(&v->links);
}

/* Without another rail the peer is lost soon. */
static void hasten(struct verbs_peer *p)
{
    if (p->pause_ms > PAUSE_LAST_MS)
        p->pause_ms = PAUSE_LAST_MS;
    if (trib_deadline_left_ms(p->revive_at) > PAUSE_LAST_MS)
        p->revive_at = trib_deadline_ms(PAUSE_LAST_MS);
}

enum multirail_revival trib_verbs_revive(struct trib_transport *t, int peer, bool last,
                                         char why[TRIB_WHY_MAX])
{
    enum multirail_revival result = MULTIRAIL_REVIVING;
    struct verbs *v = verbs_of(t);
    struct verbs_peer *p = &v->peers[peer];

    assert(peer >= 0 && peer < v->size && peer != v->self);
    if (!verbs_is_ours(v) || p->address.magic != VERBS_MAGIC)
        return MULTIRAIL_REVIVING;
    struct verbs_revival *a = find_attempt(v, peer);
    if (a && !atomic_load_explicit(&a->finished, memory_order_acquire))
        return MULTIRAIL_REVIVING;
    if (a)
        result = join_attempt(v, a);
    if (verbs_device_end(v)) {
        trib_verbs_device_end_text(v, why);
        return MULTIRAIL_NEVER;
    }
    if (result == MULTIRAIL_NEVER) {
        snprintf(why, TRIB_WHY_MAX, "process %d refused: %.100s", p->address.pid,
                 p->never);
        return result;
    }
    if (p->base.state == TRIB_PEER_CONNECTED)
        return is_proved(v, peer) && has_inlet(v, p) ? MULTIRAIL_REVIVED : result;
    if (p->base.state == TRIB_PEER_LOST || p->base.state == TRIB_PEER_LEFT)
        reset_peer(v, peer);
    if (last)
        hasten(p);
    if (p->base.state != TRIB_PEER_UNKNOWN || !trib_deadline_passed(p->revive_at))
        return result;
    if (trib_verbs_port_is_active(v))
        start_attempt(v, peer);
    else
        pause_attempts(p);
    return result;
}
