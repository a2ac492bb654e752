/* SPDX-License-Identifier: BSD-3-Clause */
/* State of each peer and its rails. multirail_failover.c explains the states. */
#include <stdio.h>

#include "base/error.h"
#include "base/snapshot.h"
#include "base/time.h"
#include "transport/multirail/multirail.h"

trib_status_t trib_multirail_take_error(struct multirail *r, int inner,
                                        trib_status_t status)
{
    assert(inner >= 0 && inner < MULTIRAIL_MAX);
    if (status < 0 && status != TRIB_ERR_NO_RESOURCE)
        trib_fail(r->err, status, "%s", trib_error_text(&r->inner_err[inner]));
    trib_error_clear(&r->inner_err[inner]);
    return status;
}

void trib_multirail_enlist(struct multirail *r, int peer)
{
    if (r->peers[peer].listed)
        return;
    assert(r->n_list < r->size);
    r->peers[peer].listed = true;
    r->list[r->n_list++] = peer;
}

enum {
    COST_LEAST = 256, /* cost of a byte on the fastest rail */
    EVENT_BYTES = 64, /* counted for each event in addition to its bytes */
    LEN_MAX = 1 << 30, /* longer events count as much; keeps costs in 64 bits */
};

void trib_multirail_set_order(struct multirail_order *order,
                              const struct multirail_peer *p)
{
    *order = (struct multirail_order){.n = 0};
    for (int k = 0; k < p->n; k++) {
        if (p->dead >> k & 1)
            continue;
        assert(p->rails[k].share > 0 && p->rails[k].share <= MULTIRAIL_SHARE);
        order->rail[order->n] = (uint8_t)k;
        order->cost[order->n++] = COST_LEAST * MULTIRAIL_SHARE / p->rails[k].share;
    }
    for (int i = 1; i < order->n; i++) {
        if (order->cost[i] < order->cost[order->at])
            order->at = (uint8_t)i;
    }
}

/* The length of the next event is not known yet to the receiver: assume this one's. */
void trib_multirail_advance(struct multirail_order *order, uint64_t len)
{
    const uint64_t bytes = (len < LEN_MAX ? len : LEN_MAX) + EVENT_BYTES;
    uint64_t least = UINT64_MAX, first = UINT64_MAX;

    assert(order->at < order->n);
    if (order->n == 1)
        return;
    order->used[order->at] += bytes * order->cost[order->at];
    for (int i = 0; i < order->n; i++) {
        const uint64_t end = order->used[i] + bytes * order->cost[i];
        if (order->used[i] < least)
            least = order->used[i];
        if (end < first) {
            first = end;
            order->at = (uint8_t)i;
        }
    }
    for (int i = 0; i < order->n; i++)
        order->used[i] -= least;
}

void trib_multirail_set_shares(struct multirail_peer *p,
                               const uint32_t speed[MULTIRAIL_MAX])
{
    uint32_t most = 0;

    for (int k = 0; k < p->n; k++) {
        if (speed[k] > most)
            most = speed[k];
    }
    for (int k = 0; k < p->n; k++) {
        if (!speed[k])
            most = 0;
    }
    for (int k = 0; k < p->n; k++) {
        const uint64_t part =
            most ? (uint64_t)speed[k] * MULTIRAIL_SHARE / most : MULTIRAIL_SHARE;
        p->rails[k].share = (uint16_t)(part ? part : 1);
    }
}

int trib_multirail_count(unsigned set)
{
    return __builtin_popcount(set);
}

void trib_multirail_trouble(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];

    assert(peer >= 0 && peer < r->size);
    if (!p->trouble_at)
        p->trouble_at = trib_now_ns();
    p->trouble = true;
    trib_multirail_enlist(r, peer);
}

void trib_multirail_fail_rails(struct multirail *r, int peer, unsigned rails,
                               const char *why)
{
    struct multirail_peer *p = &r->peers[peer];

    for (int k = 0; k < p->n; k++) {
        if (why && (rails >> k & 1) && !*p->rails[k].why)
            snprintf(p->rails[k].why, sizeof(p->rails[k].why), "%.150s", why);
    }
    p->failing |= (uint8_t)rails;
    trib_multirail_trouble(r, peer);
}

void trib_multirail_fail_peer(struct multirail *r, int peer, const char *why)
{
    struct multirail_peer *p = &r->peers[peer];

    assert(peer >= 0 && peer < r->size);
    if (p->state != TRIB_PEER_CONNECTED)
        return;
    p->state = TRIB_PEER_DRAINING;
    snprintf(p->why, sizeof(p->why), "%.150s", why);
    trib_multirail_trouble(r, peer);
}

void trib_multirail_take_answer(struct multirail *r, int peer, int n)
{
    struct multirail_peer *p = &r->peers[peer];

    if (p->flow != MULTIRAIL_ASKING || n < 0 || n >= MULTIRAIL_MAX ||
        n != trib_multirail_count(p->dead))
        return;
    struct multirail_answer cell; /* the peer may write to its board at any time */
    trib_snapshot(&cell, &r->boards[peer].answer[n], sizeof(cell));
    if (cell.magic != MULTIRAIL_MAGIC || cell.dead != p->dead ||
        cell.generation != p->generation)
        return;
    if (cell.got > p->events || cell.got < p->released) {
        trib_multirail_fail_peer(
            r, peer, "a rail was lost together with data that was reported as arrived");
        return;
    }
    uint64_t at = p->head;
    while (at != p->tail && p->log[at % MULTIRAIL_LOG].event < cell.got)
        at++;
    p->confirmed = p->repeat_at = at;
    for (int k = 0; k < p->n; k++) {
        p->rails[k].done = 0;
        p->rails[k].unsignalled = 0;
    }
    trib_multirail_set_order(&p->out, p);
    p->flow = MULTIRAIL_REPEATING;
    trib_multirail_trouble(r, peer);
}
