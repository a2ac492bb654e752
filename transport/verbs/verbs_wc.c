/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: work completions with an error, and control messages of the peer's transport.
 */
#include "transport/verbs/verbs_wc.h"

static bool has_inlet(struct verbs *v, struct verbs_peer *p)
{
    pthread_mutex_lock(&v->links);
    bool has = p->in.qp != NULL;
    pthread_mutex_unlock(&v->links);
    return has;
}

void trib_verbs_handle_control(struct verbs *v, struct verbs_route route, uint32_t word)
{
    struct verbs_peer *p = &v->peers[route.peer];

    assert(route.peer >= 0 && route.peer < v->size);
    switch (word >> VERBS_CONTROL_SHIFT) {
    case VERBS_PIECES:
        p->ahead = (uint64_t)(word & VERBS_CONTROL_VALUE)
                   << atomic_load_explicit(&p->piece_shift, memory_order_relaxed);
        break;
    case VERBS_DISCONNECT:
        p->got_disconnect = true;
        /* DISCONNECT on the inlet is the last message. After one on the outlet, writes
         * may still arrive on the inlet. */
        if (!route.outlet || !has_inlet(v, p))
            p->finished = true;
        trib_verbs_lose_peer(v, route.peer, "process %d has left", p->base.who.pid);
        break;
    case VERBS_GIVEN_UP:
        p->base.given_up = true;
        trib_verbs_lose_peer(v, route.peer, TRIB_PEER_GAVE_UP, p->base.who.pid);
        if (p->base.state == TRIB_PEER_DRAINING && !p->got_disconnect)
            trib_peer_explain(&p->base, TRIB_PEER_GAVE_UP, p->base.who.pid);
        break;
    default:
        break;
    }
}

/* The queues of a queue pair are flushed in any order: the error may come last. */
static bool is_first_cause(const struct verbs_peer *p, const struct ibv_wc *wc)
{
    return p->base.state == TRIB_PEER_DRAINING && p->unclear == VERBS_FLUSHED &&
           wc->status != IBV_WC_WR_FLUSH_ERR;
}

/*
 * Only the first error of a connection tells its cause; later flushes tell nothing. If
 * the first error is a flush, the device stopped the queue pair. An async event or the
 * peer's end may then still report the cause.
 */
static void handle_error(struct verbs *v, const struct ibv_wc *wc, int peer)
{
    struct verbs_peer *p = &v->peers[peer];
    char why[TRIB_WHY_MAX];

    assert(peer >= 0 && peer < v->size);
    if (p->base.state != TRIB_PEER_CONNECTED && !is_first_cause(p, wc))
        return;
    trib_verbs_explain_status(v, peer, wc->status, why);
    p->broken = trib_verbs_is_network_error(wc->status);
    trib_verbs_lose_peer(v, peer, "process %d: %s", p->base.who.pid, why);
    switch (wc->status) {
    case IBV_WC_WR_FLUSH_ERR:
        p->unclear = VERBS_FLUSHED;
        break;
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_ABORT_ERR:
        trib_verbs_note_refusal(v, peer, wc);
        return;
    default:
        break;
    }
    if (!trib_peer_liveness_dead(&p->base.liveness)) /* death is explanation enough */
        trib_verbs_report_error(v, peer, wc->status, wc->vendor_err);
}

static bool is_outlet(const struct verbs *v, const struct ibv_wc *wc)
{
    const struct ibv_qp *qp = v->peers[verbs_wc_peer(wc)].qp;

    return qp && qp->qp_num == wc->qp_num;
}

void trib_verbs_handle_failed_wc(struct verbs *v, const struct ibv_wc *wc)
{
    switch (verbs_wc_work(wc)) {
    case VERBS_SENT:
        verbs_handle_sent(v, wc);
        if (is_outlet(v, wc)) /* ignore an abandoned queue pair */
            handle_error(v, wc, verbs_wc_peer(wc));
        break;
    case VERBS_SENT_DISCONNECT:
        v->peers[verbs_wc_peer(wc)].disconnect_pending = false;
        break;
    default: {
        struct verbs_route route = trib_verbs_route_find(v, wc->qp_num);
        if (v->srq)
            v->owed++;
        if (route.peer >= 0)
            handle_error(v, wc, route.peer);
    }
    }
}
