/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx: writes. Each write is an active message whose header names the target of its
 * payload.
 */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "transport/ucx/ucx.h"

static struct ucx_send_req *send_req(const struct ucx *u, struct ucx_peer *p,
                                     uint64_t number)
{
    return &p->send_reqs[number & (u->depth - 1)];
}

static void handle_sent(void *request, ucs_status_t status, void *user_data)
{
    struct ucx_send_req *t = user_data;
    struct ucx_peer *p = &t->ucx->peers[t->peer];

    t->done = true;
    p->pending--;
    if (status != UCS_OK) {
        t->signal = false;
        if (p->fault == UCS_OK)
            p->fault = status;
        atomic_store_explicit(&t->ucx->async_events, true, memory_order_release);
    }
    t->ucx->api.ucp_request_free(request);
}

/* Call with `lock` held. */
static ucs_status_t post(struct ucx *u, int peer, struct ucx_send_req *t,
                         const void *payload)
{
    struct ucx_peer *p = &u->peers[peer];
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_MEMORY_TYPE,
        .cb.send = handle_sent,
        .user_data = t,
        .memory_type = UCS_MEMORY_TYPE_HOST,
    };

    t->done = false;
    p->pending++;
    ucs_status_ptr_t request =
        u->api.ucp_am_send_nbx(p->ep, UCX_AM_ID, &t->head, sizeof(t->head), payload,
                               payload ? (size_t)t->head.len : 0, &param);
    if (UCS_PTR_IS_PTR(request))
        return UCS_INPROGRESS;
    p->pending--;
    t->done = true;
    return UCS_PTR_STATUS(request);
}

/* Drop completed requests at the head whose completion need not be reported. */
static void release_done(struct ucx *u, struct ucx_peer *p)
{
    bool had = p->head != p->tail;

    while (p->head != p->tail && send_req(u, p, p->head)->done &&
           !send_req(u, p, p->head)->signal)
        p->head++;
    if (had && p->head == p->tail)
        u->backlog--;
}

/* Call with `lock` held. */
static trib_status_t enqueue(struct ucx *u, int peer, const struct trib_write *w)
{
    struct ucx_peer *p = &u->peers[peer];

    if (p->fault != UCS_OK || !p->ep)
        return TRIB_ERR_NO_RESOURCE; /* the loss is about to be reported */
    if (p->tail - p->head == u->depth)
        release_done(u, p);
    if (p->tail - p->head == u->depth)
        return TRIB_ERR_NO_RESOURCE;
    struct ucx_send_req *t = send_req(u, p, p->tail);
    const uint8_t *payload =
        w->len ? ((const struct trib_table_region *)w->local)->ptr + w->local_off
               : NULL;
    t->head = (struct ucx_head){
        .key = p->out_key,
        .kind = w->quiet ? UCX_QUIET : UCX_WRITE,
        .rank = u->self,
        .number = p->tail,
        .off = w->len ? w->remote_off : 0,
        .len = w->len,
        .region = w->len ? ((const struct trib_table_remote *)w->remote)->region : 0,
        .imm = w->imm,
    };
    t->token = w->token;
    t->signal = w->signal;
    u->backlog += p->head == p->tail;
    p->tail++;
    ucs_status_t status = post(u, peer, t, payload);
    trib_ucx_ask_help(u, sizeof(t->head) + w->len, status == UCS_INPROGRESS);
    if (UCS_STATUS_IS_ERR(status)) {
        t->signal = false;
        if (p->fault == UCS_OK)
            p->fault = status;
        atomic_store_explicit(&u->async_events, true, memory_order_release);
    }
    release_done(u, p);
    return TRIB_OK;
}

trib_status_t trib_ucx_write(struct trib_transport *t, int peer,
                             const struct trib_write *write)
{
    struct ucx *u = ucx_of(t);
    struct ucx_peer *p = &u->peers[peer];
    trib_status_t status = TRIB_OK;

    assert(peer >= 0 && peer < u->size);
    status = trib_peer_check_write(p->base.state);
    if (status != TRIB_OK)
        return status;
    if (write->len)
        status = trib_table_check(write, peer, u->err);
    if (status != TRIB_OK)
        return status;
    pthread_mutex_lock(&u->lock);
    status = enqueue(u, peer, write);
    pthread_mutex_unlock(&u->lock);
    return status;
}

/* Send the first message to a peer, which makes UCX connect. It borrows the last
 * send_req, which no write uses yet. Call with `lock` held. */
trib_status_t trib_ucx_send_first(struct ucx *u, int peer)
{
    struct ucx_peer *p = &u->peers[peer];
    struct ucx_send_req *t = send_req(u, p, u->depth - 1);

    assert(p->tail == 0);
    t->head = (struct ucx_head){.key = p->out_key, .kind = UCX_FIRST, .rank = u->self};
    t->signal = false;
    ucs_status_t status = post(u, peer, t, NULL);
    if (UCS_STATUS_IS_ERR(status))
        return trib_fail(u->err, TRIB_ERR_PEER_LOST, "process %d: %s", p->base.who.pid,
                         trib_ucx_status_text(&u->api, status));
    return TRIB_OK;
}

static int reap_peer(struct ucx *u, int peer, struct trib_event *events, int max)
{
    struct ucx_peer *p = &u->peers[peer];
    int n = 0;

    release_done(u, p);
    while (n < max && p->head != p->tail && send_req(u, p, p->head)->done) {
        events[n++] = (struct trib_event){.kind = TRIB_EVENT_WRITE_DONE,
                                          .peer = peer,
                                          .token = send_req(u, p, p->head)->token};
        send_req(u, p, p->head)->signal = false;
        release_done(u, p);
    }
    return n;
}

/* Call with `lock` held. */
int trib_ucx_reap(struct ucx *u, struct trib_event *events, int max)
{
    int n = 0;

    for (int i = 0; i < u->size && n < max && u->backlog; i++) {
        if (u->peers[i].head != u->peers[i].tail)
            n += reap_peer(u, i, events + n, max - n);
    }
    return n;
}

void trib_ucx_wake(struct trib_transport *t, int peer)
{
    struct ucx *u = ucx_of(t);

    assert(peer >= 0 && peer < u->size);
    if (peer == u->self)
        trib_ucx_signal_owner(u);
    else
        trib_ucx_send_control(u, peer, UCX_WAKE, 0);
}
