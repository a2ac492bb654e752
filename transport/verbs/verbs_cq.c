/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: completions, and waiting for them.
 */
#include <assert.h>
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/time.h"
#include "transport/verbs/verbs.h"

enum {
    POLLS_PER_CLOCK = 32,
    TICK_NS = 5000000,
    ACK_EVERY = 64, /* completion events per acknowledgement, which takes a lock */
    DRAIN_PAUSE_NS = 20000,
};

#define CONTROL_VALUE ((UINT32_C(1) << VERBS_CONTROL_SHIFT) - 1)

trib_status_t trib_verbs_post_receives(struct verbs *v)
{
    struct ibv_recv_wr *bad;

    while (v->owed) {
        uint32_t n = v->owed < VERBS_BATCH ? v->owed : VERBS_BATCH;
        for (uint32_t i = 0; i < n; i++)
            v->empty_recvs[i] = (struct ibv_recv_wr){
                .wr_id = verbs_work_id(VERBS_RECEIVED, 0, 0),
                .next = i + 1 < n ? &v->empty_recvs[i + 1] : NULL,
            };
        if (ibv_post_srq_recv(v->srq, v->empty_recvs, &bad) != 0)
            return trib_fail(v->err, TRIB_ERR_SYSTEM,
                             "verbs: cannot post receives on %s: %m", v->label);
        v->owed -= n;
    }
    return TRIB_OK;
}

static void repost(struct verbs *v)
{
    if (v->owed >= VERBS_BATCH)
        (void)trib_verbs_post_receives(v); /* on failure, the next poll retries */
}

static bool listens_to(const struct verbs_peer *p)
{
    return p->base.state != TRIB_PEER_LOST && p->base.state != TRIB_PEER_LEFT;
}

/* Complete all requests up to this one. Ignore completions of an abandoned queue pair:
 * its requests already count as done. */
static int take_sent(struct verbs *v, const struct ibv_wc *wc, struct trib_event *event)
{
    int peer = (int)(wc->wr_id >> 32 & CONTROL_VALUE);
    struct verbs_peer *p = &v->peers[peer];
    struct verbs_send_wr send_wr = p->send_wrs[(uint32_t)wc->wr_id % v->depth];
    uint32_t done = (uint32_t)wc->wr_id + 1;

    if ((int32_t)(done - atomic_load_explicit(&p->head, memory_order_relaxed)) <= 0)
        return 0;
    atomic_store_explicit(&p->head, done, memory_order_release);
    if (!send_wr.asked || !listens_to(p))
        return 0;
    *event = (struct trib_event){
        .kind = TRIB_EVENT_WRITE_DONE, .peer = peer, .token = send_wr.token};
    return 1;
}

static bool has_inlet(struct verbs *v, struct verbs_peer *p)
{
    pthread_mutex_lock(&v->links);
    bool has = p->in.qp != NULL;
    pthread_mutex_unlock(&v->links);
    return has;
}

static void take_word(struct verbs *v, struct verbs_route route, uint32_t word)
{
    struct verbs_peer *p = &v->peers[route.peer];

    switch (word >> VERBS_CONTROL_SHIFT) {
    case VERBS_PIECES:
        p->ahead = (uint64_t)(word & CONTROL_VALUE)
                   << atomic_load_explicit(&p->piece_shift, memory_order_relaxed);
        break;
    case VERBS_BYE:
        p->said_bye = true;
        /* A BYE on the inlet is the last message. After a BYE on the outlet, writes
         * may still arrive on the inlet. */
        if (!route.outlet || !has_inlet(v, p))
            p->finished = true;
        trib_verbs_going(v, route.peer, "process %d has left", p->base.who.pid);
        break;
    case VERBS_GIVEN_UP:
        p->base.given_up = true;
        trib_verbs_going(v, route.peer, TRIB_PEER_GAVE_UP, p->base.who.pid);
        if (p->base.state == TRIB_PEER_GOING && !p->said_bye)
            trib_peer_explain(&p->base, TRIB_PEER_GAVE_UP, p->base.who.pid);
        break;
    default:
        break;
    }
}

static int take_received(struct verbs *v, const struct ibv_wc *wc,
                         struct trib_event *event)
{
    struct verbs_route route = trib_verbs_route_find(v, wc->qp_num);

    v->owed++;
    if (route.peer < 0 || !listens_to(&v->peers[route.peer]))
        return 0;
    struct verbs_peer *p = &v->peers[route.peer];
    if (wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM) {
        if (wc->wc_flags & IBV_WC_WITH_IMM) /* without an immediate it only wakes */
            take_word(v, route, ntohl(wc->imm_data));
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

/*
 * Only the first error of a connection tells its cause; later flushes tell nothing. If
 * the first error is a flush, the device stopped the queue pair. An async event or the
 * peer's end may then still report the cause.
 */
static void take_error(struct verbs *v, const struct ibv_wc *wc, int peer)
{
    struct verbs_peer *p = &v->peers[peer];

    if (p->base.state != TRIB_PEER_CONNECTED)
        return;
    trib_verbs_going(v, peer, "process %d: %s", p->base.who.pid,
                     trib_verbs_status_text(wc->status).clause);
    switch (wc->status) {
    case IBV_WC_WR_FLUSH_ERR:
        p->unclear = VERBS_FLUSHED;
        break;
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_ABORT_ERR:
        trib_verbs_refused(v, peer, wc);
        return;
    default:
        break;
    }
    if (!trib_peer_liveness_dead(&p->base.liveness)) /* death is explanation enough */
        trib_verbs_complain(v, peer, wc->status, wc->vendor_err);
}

static bool is_outlet(const struct verbs *v, const struct ibv_wc *wc)
{
    const struct ibv_qp *qp = v->peers[wc->wr_id >> 32 & CONTROL_VALUE].qp;

    return qp && qp->qp_num == wc->qp_num;
}

/* In a failed completion only wr_id, status and QP number are valid. */
static void take_failed(struct verbs *v, const struct ibv_wc *wc)
{
    struct trib_event none;

    switch (wc->wr_id >> VERBS_WORK_SHIFT) {
    case VERBS_SENT:
        (void)take_sent(v, wc, &none);
        if (is_outlet(v, wc)) /* ignore an abandoned queue pair */
            take_error(v, wc, (int)(wc->wr_id >> 32 & CONTROL_VALUE));
        break;
    case VERBS_SAID_BYE:
        v->peers[wc->wr_id >> 32 & CONTROL_VALUE].bye_pending = false;
        break;
    default: {
        struct verbs_route route = trib_verbs_route_find(v, wc->qp_num);
        v->owed++;
        if (route.peer >= 0)
            take_error(v, wc, route.peer);
    }
    }
}

/* Handle one completion. Return the number of events, 0 or 1. */
static int take(struct verbs *v, const struct ibv_wc *wc, struct trib_event *event)
{
    if (wc->status != IBV_WC_SUCCESS) {
        take_failed(v, wc);
        return 0;
    }
    switch (wc->wr_id >> VERBS_WORK_SHIFT) {
    case VERBS_SENT:
        return take_sent(v, wc, event);
    case VERBS_SAID_BYE:
        v->peers[wc->wr_id >> 32 & CONTROL_VALUE].bye_pending = false;
        return 0;
    default:
        return take_received(v, wc, event);
    }
}

/* Fetch completions. Those deferred by trib_verbs_drain come first. */
static int fetch(struct verbs *v, struct ibv_wc *wc, int max)
{
    int n = 0;

    assert(v->deferred_at + v->n_deferred <= v->deferred_max);
    for (; n < max && v->n_deferred; n++, v->n_deferred--)
        wc[n] = v->deferred_cqes[v->deferred_at++];
    if (n)
        return n;
    n = ibv_poll_cq(v->cq, max, wc);
    return n > 0 ? n : 0;
}

static void look_around(struct verbs *v)
{
    if (atomic_load_explicit(&v->async_events, memory_order_relaxed))
        trib_verbs_take_async_events(v);
    if (++v->polls % POLLS_PER_CLOCK != 0 && v->tick_at != 0 &&
        !atomic_load_explicit(&v->slept, memory_order_relaxed))
        return;
    uint64_t now = trib_now_ns();
    atomic_store_explicit(&v->slept, false, memory_order_relaxed);
    if (now >= v->tick_at) {
        v->tick_at = now + TICK_NS;
        trib_verbs_tick(v);
    }
}

int trib_verbs_poll(struct trib_transport *t, struct trib_event *events, int max)
{
    struct verbs *v = verbs_of(t);
    struct ibv_wc wc[VERBS_BATCH];
    bool empty = false;
    int n = 0;

    look_around(v);
    while (n < max && !empty) {
        int wanted = max - n < VERBS_BATCH ? max - n : VERBS_BATCH;
        int got = fetch(v, wc, wanted);
        for (int i = 0; i < got; i++)
            n += take(v, &wc[i], &events[n]);
        empty = got < wanted && v->n_deferred == 0;
    }
    repost(v);
    if (v->n_going && empty && n < max)
        n += trib_verbs_report_losses(v, events + n, max - n);
    return n;
}

/* Once armed, the CQ stays armed until a completion event. */
void trib_verbs_arm(struct trib_transport *t)
{
    struct verbs *v = verbs_of(t);

    if (!atomic_exchange_explicit(&v->armed, true, memory_order_acq_rel))
        (void)ibv_req_notify_cq(v->cq, 0);
}

static void take_told(struct verbs *v)
{
    struct ibv_cq *cq;
    void *context;

    while (v->api.ibv_get_cq_event(v->channel, &cq, &context) == 0) {
        atomic_store_explicit(&v->armed, false, memory_order_release);
        if (atomic_fetch_add_explicit(&v->unacked, 1, memory_order_relaxed) + 1 >=
            ACK_EVERY)
            v->api.ibv_ack_cq_events(
                cq, atomic_exchange_explicit(&v->unacked, 0, memory_order_relaxed));
    }
}

int trib_verbs_event_fd(struct trib_transport *t)
{
    return verbs_of(t)->epoll;
}

void trib_verbs_wait(struct trib_transport *t, int timeout_us)
{
    struct verbs *v = verbs_of(t);
    struct timespec ts = {timeout_us / 1000000, timeout_us % 1000000 * 1000L};
    struct pollfd fd = {.fd = v->epoll, .events = POLLIN};
    uint64_t rings;

    atomic_store_explicit(&v->slept, true, memory_order_relaxed);
    if (timeout_us > 0 && ppoll(&fd, 1, &ts, NULL) <= 0)
        return;
    (void)!read(v->wakeup_fd, &rings, sizeof(rings)); /* empty, or read by another
                                                       * thread */
    take_told(v);
}

static bool said(struct verbs *v, const struct verbs_peer *p)
{
    pthread_mutex_lock(&v->posting);
    bool all =
        !p->bye_pending &&
        (!p->qp || p->tail == atomic_load_explicit(&p->head, memory_order_relaxed));
    pthread_mutex_unlock(&v->posting);
    return all;
}

static bool all_said(struct verbs *v, int peer)
{
    for (int i = peer < 0 ? 0 : peer; i < (peer < 0 ? v->size : peer + 1); i++) {
        if (!said(v, &v->peers[i]))
            return false;
    }
    return true;
}

/* Defer a completion of another peer to the next poll. */
static void put_by(struct verbs *v, const struct ibv_wc *wc)
{
    if (v->deferred_at + v->n_deferred == v->deferred_max || v->n_deferred == 0) {
        memmove(v->deferred_cqes, v->deferred_cqes + v->deferred_at,
                v->n_deferred * sizeof(*v->deferred_cqes));
        v->deferred_at = 0;
    }
    assert(v->deferred_at + v->n_deferred < v->deferred_max);
    v->deferred_cqes[v->deferred_at + v->n_deferred++] = *wc;
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

    if (peer >= 0 && !v->deferred_cqes)
        v->deferred_cqes = malloc(v->deferred_max * sizeof(*v->deferred_cqes));
    if (peer >= 0 && !v->deferred_cqes)
        return;
    while (!all_said(v, peer) && !trib_deadline_passed(until)) {
        int n = ibv_poll_cq(v->cq, VERBS_BATCH, wc);
        for (int i = 0; i < n; i++) {
            bool ours = wc[i].wr_id >> VERBS_WORK_SHIFT != VERBS_RECEIVED &&
                        (int)(wc[i].wr_id >> 32 & CONTROL_VALUE) == peer;
            if (peer < 0 || ours)
                (void)take(v, &wc[i], &dropped);
            else
                put_by(v, &wc[i]);
        }
        if (peer < 0)
            repost(v);
        if (n <= 0)
            nanosleep(&pause, NULL);
    }
}
