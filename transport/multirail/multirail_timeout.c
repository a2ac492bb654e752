/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rails: a rail is silent while another one responds.
 *
 * A device drops a silent peer after the same time, whether there are other rails or
 * not. A switch that restarts interrupts all rails at once; abandoning them one by one
 * would lose the peer. So silence alone is no reason to abandon a rail. If requests on
 * a rail are not done for an eighth of timeout_ns, the other rails are probed. A probe
 * is a control message with an event; it tells nothing new, but its completion is
 * reported. The silent rail is abandoned if others answer for three more eighths, so
 * after half of timeout_ns. While no rail answers, all wait.
 *
 * A slow rail is not silent. The limit grows by the time that the outstanding bytes
 * take at the rail's nominal speed, times SLOWER, and to timeout_ns while requests to
 * other peers complete on the same device, which serves them in turn.
 *
 * A probe has an event because a peer without free receives falls silent on one device
 * after the other.
 *
 * Time counts only while this rank polls.
 */
#include <stdio.h>

#include "base/time.h"
#include "transport/multirail/multirail.h"

enum {
    POLLS_PER_CLOCK = 32,
    CHECKS = 128, /* checks per timeout_ns, at least */
    CHECK_MS = 10, /* at most, because a check also takes a step of reconnecting */
    PROBES = 16, /* probes of a rail per timeout_ns */
    /* In eighths of timeout_ns. */
    SUSPECTED = 1,
    PROVED = 3, /* more, during which another rail must answer */
    FRESH = 2, /* maximum age of the last answer */
    BUSY = 8, /* instead of SUSPECTED, while the device serves other peers */
    SLOWER = 4, /* a rail may be this much slower than its nominal speed */
};

static uint64_t eighths(const struct multirail *r, unsigned n)
{
    return r->timeout_ns / 8 * n;
}

/* Return the time that a rail may take until its next request is done. */
static uint64_t patience(const struct multirail *r, const struct multirail_peer *p,
                         int k, uint64_t now)
{
    const int inner = p->rails[k].inner;
    const bool busy =
        r->moved_at[inner] && now - r->moved_at[inner] < eighths(r, FRESH);
    uint64_t bytes = 0;

    assert(inner >= 0 && inner < r->n);
    for (uint64_t at = p->head; at != p->tail && r->speed[inner]; at++) {
        const struct multirail_entry *e = &p->log[at % MULTIRAIL_LOG];
        if (e->rail == k && at >= p->rails[k].done)
            bytes += e->w.len;
    }
    return eighths(r, busy ? BUSY : SUSPECTED) +
           (bytes ? SLOWER * 8000 * bytes / r->speed[inner] : 0);
}

/* Return the rails whose requests have not made progress for a while. */
static unsigned silent_rails(const struct multirail *r, struct multirail_peer *p,
                             unsigned lives, bool afresh, uint64_t now)
{
    unsigned silent = 0;

    for (int k = 0; k < p->n; k++) {
        struct multirail_rail *rail = &p->rails[k];
        if (!(lives >> k & 1) || rail->last <= rail->done)
            rail->since = 0;
        else if (afresh || !rail->since || rail->seen != rail->done)
            rail->since = now;
        else if (now - rail->since >= eighths(r, SUSPECTED) &&
                 now - rail->since >= patience(r, p, k, now))
            silent |= 1u << k;
        rail->seen = rail->done;
    }
    return silent;
}

static void probe(struct multirail *r, int peer, int k, uint64_t now)
{
    struct multirail_peer *p = &r->peers[peer];
    struct multirail_rail *rail = &p->rails[k];

    assert(k >= 0 && k < p->n && !(p->dead >> k & 1));
    if (rail->probing || now - rail->asked < r->timeout_ns / PROBES)
        return;
    if (trib_multirail_send_msg(
            r, peer, k,
            (struct multirail_msg){.spare = true,
                                   .len = MULTIRAIL_MARK +
                                          multirail_state(p->generation, p->dead),
                                   .probe = true}) != TRIB_OK)
        return; /* the next check tries again */
    rail->probing = true;
    rail->asked = now;
}

/* Return true if one of these rails has answered recently. */
static bool one_answers(const struct multirail *r, const struct multirail_peer *p,
                        unsigned rails, uint64_t now)
{
    for (int k = 0; k < p->n; k++) {
        const struct multirail_rail *rail = &p->rails[k];
        if ((rails >> k & 1) && rail->heard && now - rail->heard < eighths(r, FRESH))
            return true;
    }
    return false;
}

static void check_peer(struct multirail *r, int peer, bool afresh, uint64_t now)
{
    struct multirail_peer *p = &r->peers[peer];
    unsigned lives = multirail_all(p) & ~(unsigned)(p->dead | p->failing | p->left);
    unsigned silent = silent_rails(r, p, lives, afresh, now);
    char why[TRIB_WHY_MAX];

    for (int k = 0; silent && k < p->n; k++) {
        if ((lives & ~silent) >> k & 1)
            probe(r, peer, k, now);
    }
    if (!silent || afresh || !one_answers(r, p, lives & ~silent, now)) {
        p->proved_at = 0;
        return;
    }
    if (!p->proved_at)
        p->proved_at = now;
    if (now - p->proved_at < eighths(r, PROVED))
        return;
    p->proved_at = 0;
    snprintf(why, sizeof(why), "no progress for %.1f s, unlike on %s",
             (double)eighths(r, SUSPECTED + PROVED) / 1e9,
             __builtin_popcount(lives & ~silent) > 1 ? "other rails" : "another rail");
    trib_multirail_fail_rails(r, peer, silent, why);
}

void trib_multirail_check_timeouts(struct multirail *r)
{
    if (++r->polls % POLLS_PER_CLOCK != 0 &&
        !atomic_load_explicit(&r->slept, memory_order_relaxed))
        return;
    atomic_store_explicit(&r->slept, false, memory_order_relaxed);
    uint64_t now = trib_now_ns();
    const uint64_t pause = CHECK_MS * UINT64_C(1000000);
    if (now - r->checked_at < pause && now - r->checked_at < r->timeout_ns / CHECKS)
        return;
    bool afresh = now - r->checked_at > eighths(r, SUSPECTED);
    r->checked_at = now;
    for (int i = 0; i < r->n; i++) {
        if (r->done[i] != r->seen_done[i])
            r->moved_at[i] = now;
        r->seen_done[i] = r->done[i];
    }
    for (int i = 0; i < r->size; i++) {
        const struct multirail_peer *p = &r->peers[i];
        if (p->state != TRIB_PEER_CONNECTED)
            continue;
        if (p->n > 1 && p->flow == MULTIRAIL_FLOWING)
            check_peer(r, i, afresh, now);
        trib_multirail_fail_back(r, i);
    }
}
