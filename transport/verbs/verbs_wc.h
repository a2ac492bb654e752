/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How work completions (WC) are handled. The path of successful completions is inline,
 * because the poll loop runs it for each message. Errors and control messages are
 * handled in verbs_wc.c.
 */
#ifndef TRANSPORT_VERBS_VERBS_WC_H
#define TRANSPORT_VERBS_VERBS_WC_H

#include <arpa/inet.h>
#include <assert.h>

#include "transport/verbs/verbs.h"

/* Handle an error. Only wr_id, status and QP number are valid then. */
void trib_verbs_handle_failed_wc(struct verbs *v, const struct ibv_wc *wc);
/* Handle a message of the peer's transport, received on `route`. */
void trib_verbs_handle_control(struct verbs *v, struct verbs_route route,
                               uint32_t word);

static inline enum verbs_work verbs_wc_work(const struct ibv_wc *wc)
{
    return (enum verbs_work)(wc->wr_id >> VERBS_WORK_SHIFT);
}

/* Return the peer of a send; receives have none. */
static inline int verbs_wc_peer(const struct ibv_wc *wc)
{
    return (int)(wc->wr_id >> 32 & VERBS_CONTROL_VALUE);
}

static inline bool verbs_peer_is_open(const struct verbs_peer *p)
{
    return p->base.state != TRIB_PEER_LOST && p->base.state != TRIB_PEER_LEFT;
}

/* Complete all requests up to this one; all before the first that failed have
 * succeeded. Ignore completions of an abandoned queue pair: its requests already count
 * as done. */
static inline void verbs_handle_sent(struct verbs *v, const struct ibv_wc *wc)
{
    struct verbs_peer *p = &v->peers[verbs_wc_peer(wc)];
    const uint32_t done = (uint32_t)wc->wr_id + 1;
    const uint32_t head = atomic_load_explicit(&p->head, memory_order_relaxed);

    if ((int32_t)(done - head) <= 0)
        return;
    atomic_store_explicit(&p->head, done, memory_order_release);
    if (wc->status == IBV_WC_SUCCESS)
        p->done = done;
    else if (p->done == head)
        p->done = done - 1;
    v->completed |= p->is_asking;
}

/* Count a consumed receive, and list an inlet that has used half of its own. */
static inline void verbs_owe_receive(struct verbs *v, struct verbs_route route,
                                     uint32_t qp_num)
{
    if (v->srq) {
        v->owed++;
        return;
    }
    if (route.peer < 0 || route.outlet)
        return;
    struct verbs_peer *p = &v->peers[route.peer];
    if (p->owed_qp_num != qp_num)
        p->owed = 0; /* of an inlet that was replaced */
    p->owed_qp_num = qp_num;
    if (++p->owed < v->link_receives / 2 || p->is_owed)
        return;
    p->is_owed = true;
    v->owing[v->n_owing++] = route.peer;
}

static inline int verbs_handle_received(struct verbs *v, const struct ibv_wc *wc,
                                        struct trib_event *event)
{
    struct verbs_route route = trib_verbs_route_find(v, wc->qp_num);

    verbs_owe_receive(v, route, wc->qp_num);
    if (route.peer < 0 || !verbs_peer_is_open(&v->peers[route.peer]))
        return 0;
    struct verbs_peer *p = &v->peers[route.peer];
    if (wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM) {
        if (wc->wc_flags & IBV_WC_WITH_IMM) /* without an immediate it only wakes */
            trib_verbs_handle_control(v, route, ntohl(wc->imm_data));
        return 0;
    }
    *event = (struct trib_event){
        .kind = TRIB_EVENT_ARRIVED,
        .peer = route.peer,
        .imm = ntohl(wc->imm_data),
        .len = p->ahead + wc->byte_len,
    };
    p->ahead = 0;
    return 1;
}

/* Handle one completion. Return the number of events, 0 or 1. */
static inline int verbs_handle_wc(struct verbs *v, const struct ibv_wc *wc,
                                  struct trib_event *event)
{
    if (wc->status != IBV_WC_SUCCESS) {
        trib_verbs_handle_failed_wc(v, wc);
        return 0;
    }
    switch (verbs_wc_work(wc)) {
    case VERBS_SENT:
        verbs_handle_sent(v, wc);
        return 0;
    case VERBS_SENT_DISCONNECT:
        v->peers[verbs_wc_peer(wc)].disconnect_pending = false;
        return 0;
    default:
        return verbs_handle_received(v, wc, event);
    }
}

/* Replace consumed receives, many at a time. */
static inline void verbs_refill(struct verbs *v)
{
    if (v->owed >= VERBS_BATCH || v->n_owing)
        (void)trib_verbs_post_receives(v); /* on failure, the next poll retries */
}

#endif
