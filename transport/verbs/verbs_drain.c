/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: wait until the requests posted to a peer are complete. Completions of other
 * peers are deferred to the next poll.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/time.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/verbs_wc.h"

enum { DRAIN_PAUSE_NS = 20000, LONGEST_PAUSE_NS = 400000 };

/* Sleep while the device works: longer each time, as most answers come soon. */
static void rest(struct timespec *pause)
{
    nanosleep(pause, NULL);
    if (pause->tv_nsec < LONGEST_PAUSE_NS)
        pause->tv_nsec += pause->tv_nsec / 2;
}

/* A peer that has left acknowledges nothing more, unless its queue pair was stopped
 * here. */
static bool is_drained(struct verbs *v, const struct verbs_peer *p)
{
    if (p->got_disconnect && !p->stopped)
        return true;
    trib_spin_lock(&v->posting);
    bool all = !p->disconnect_pending && (!p->qp || verbs_sends_done(p));
    trib_spin_unlock(&v->posting);
    return all;
}

static bool all_drained(struct verbs *v, int peer)
{
    for (int i = peer < 0 ? 0 : peer; i < (peer < 0 ? v->size : peer + 1); i++) {
        if (!is_drained(v, &v->peers[i]))
            return false;
    }
    return true;
}

/* Defer a completion of another peer to the next poll. */
static void defer_wc(struct verbs *v, const struct ibv_wc *wc)
{
    if (v->deferred_at + v->n_deferred == v->deferred_max || v->n_deferred == 0) {
        memmove(v->deferred_cqes, v->deferred_cqes + v->deferred_at,
                v->n_deferred * sizeof(*v->deferred_cqes));
        v->deferred_at = 0;
    }
    assert(v->deferred_at + v->n_deferred < v->deferred_max);
    v->deferred_cqes[v->deferred_at + v->n_deferred++] = *wc;
}

static bool make_deferred(struct verbs *v)
{
    if (!v->deferred_cqes)
        v->deferred_cqes = malloc(v->deferred_max * sizeof(*v->deferred_cqes));
    return v->deferred_cqes != NULL;
}

static bool any_pending(const struct verbs *v, const int *peers, int n)
{
    for (int i = 0; i < n; i++) {
        const struct verbs_peer *p = &v->peers[peers[i]];
        if (p->base.state == TRIB_PEER_CONNECTED && !verbs_sends_done(p))
            return true;
    }
    return false;
}

void trib_verbs_drain_sends(struct verbs *v, const int *peers, int n, uint64_t until)
{
    struct timespec pause = {0, DRAIN_PAUSE_NS};
    struct trib_event none;
    struct ibv_wc wc[VERBS_BATCH];

    if (!make_deferred(v))
        return;
    trib_verbs_flush(v);
    while (any_pending(v, peers, n) && !trib_deadline_passed(until)) {
        const int got = ibv_poll_cq(v->cq, VERBS_BATCH, wc);
        for (int i = 0; i < got; i++) {
            if (verbs_wc_work(&wc[i]) == VERBS_RECEIVED)
                defer_wc(v, &wc[i]);
            else
                (void)verbs_handle_wc(v, &wc[i], &none);
        }
        if (got <= 0 && trib_idle_call(v->idle))
            return;
        if (got <= 0)
            rest(&pause);
    }
}

/*
 * Block until everything posted to a peer, or to all peers for -1, is complete.
 * Unresponsive peers delay this until `until` at most.
 */
void trib_verbs_drain(struct verbs *v, int peer, uint64_t until)
{
    struct timespec pause = {0, DRAIN_PAUSE_NS};
    struct trib_event dropped;
    struct ibv_wc wc[VERBS_BATCH];

    assert(peer >= -1 && peer < v->size);
    if (peer >= 0 && !make_deferred(v))
        return;
    trib_verbs_flush(v);
    while (!all_drained(v, peer) && !trib_deadline_passed(until)) {
        int n = ibv_poll_cq(v->cq, VERBS_BATCH, wc);
        for (int i = 0; i < n; i++) {
            bool ours = verbs_wc_work(&wc[i]) != VERBS_RECEIVED &&
                        verbs_wc_peer(&wc[i]) == peer;
            if (peer < 0 || ours)
                (void)verbs_handle_wc(v, &wc[i], &dropped);
            else
                defer_wc(v, &wc[i]);
        }
        if (peer < 0)
            verbs_refill(v);
        if (n <= 0)
            rest(&pause);
    }
}
