/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: one connection, of either direction.
 *
 * The queue pair is created by libibverbs, not by librdmacm. So its attributes can be
 * set, and its device context belongs to this library (verbs_adapter.h), which alone
 * reads the asynchronous events. librdmacm supplies the attributes of each state
 * transition; for an OOB connection its path does.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/verbs/verbs.h"

enum {
    INLET_SENDS = 4, /* an inlet only sends the last notice */
    RNR_TIMER = 10, /* retry after 0.32 ms */
};

#define INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR_MASK \
    (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_MASK \
    (IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | \
     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

/* Without an SRQ. An outlet receives only the peer's last notice. */
static uint32_t own_receives(const struct verbs *v, bool outlet)
{
    if (v->srq)
        return 0;
    return outlet ? VERBS_OUTLET_RECEIVES : v->link_receives;
}

int trib_verbs_add_receives(struct verbs *v, struct ibv_qp *qp, uint32_t *owed)
{
    struct ibv_recv_wr wrs[VERBS_BATCH], *bad;

    assert(v->srq || qp);
    while (*owed) {
        const uint32_t n = *owed < VERBS_BATCH ? *owed : VERBS_BATCH;
        for (uint32_t i = 0; i < n; i++)
            wrs[i] = (struct ibv_recv_wr){
                .wr_id = verbs_work_id(VERBS_RECEIVED, 0, 0),
                .next = i + 1 < n ? &wrs[i + 1] : NULL,
            };
        const int error = v->srq ? ibv_post_srq_recv(v->srq, wrs, &bad)
                                 : ibv_post_recv(qp, wrs, &bad);
        if (error)
            return error;
        *owed -= n;
    }
    return 0;
}

/* Other threads may be making queue pairs, which take more or less. */
static void lower_inline(struct verbs *v, uint32_t bytes)
{
    uint32_t now = verbs_inline(v);

    while (bytes < now && !atomic_compare_exchange_weak_explicit(
                              &v->inline_bytes, &now, bytes, memory_order_relaxed,
                              memory_order_relaxed))
        continue;
}

static struct ibv_qp *create_qp(struct verbs *v, void *owner, bool outlet)
{
    struct ibv_qp *qp = NULL;
    uint32_t bytes = outlet ? verbs_inline(v) : 0;

    for (;;) {
        struct ibv_qp_init_attr init = {
            .qp_context = owner,
            .send_cq = v->cq,
            .recv_cq = v->cq,
            .srq = v->srq,
            .cap = {.max_send_wr = outlet ? v->depth : INLET_SENDS,
                    .max_recv_wr = own_receives(v, outlet),
                    .max_send_sge = 1,
                    .max_recv_sge = v->srq ? 0 : 1,
                    .max_inline_data = bytes},
            .qp_type = IBV_QPT_RC,
        };
        qp = v->api.ibv_create_qp(v->pd, &init);
        if (qp || bytes == 0)
            break;
        bytes /= 2; /* the device refuses more than its limit, but does not report the
                     * limit */
    }
    if (qp && outlet)
        lower_inline(v, bytes);
    return qp;
}

static void path_attributes(const struct verbs *v, const struct verbs_path *path,
                            struct ibv_qp_attr *attr)
{
    switch (attr->qp_state) {
    case IBV_QPS_INIT:
        attr->port_num = v->port_num;
        break;
    case IBV_QPS_RTR:
        attr->path_mtu = (enum ibv_mtu)path->mtu;
        attr->dest_qp_num = path->qp_num;
        attr->rq_psn = path->peer_psn;
        attr->max_dest_rd_atomic = 1;
        attr->ah_attr.port_num = v->port_num;
        attr->ah_attr.dlid = path->lid;
        attr->ah_attr.is_global = path->global;
        memcpy(attr->ah_attr.grh.dgid.raw, path->peer.bytes, sizeof(path->peer.bytes));
        attr->ah_attr.grh.sgid_index = path->own.index;
        break;
    default:
        attr->sq_psn = path->own_psn;
        attr->max_rd_atomic = 1;
        break;
    }
}

static int attributes(struct verbs *v, const struct verbs_link *link,
                      struct ibv_qp_attr *attr)
{
    int mask;

    if (link->by_oob)
        path_attributes(v, &link->path, attr);
    else if (v->api.rdma_init_qp_attr(link->id, attr, &mask) != 0)
        return errno;
    return trib_verbs_set_traffic(v, link, attr);
}

static int modify_qp(struct verbs *v, struct verbs_link *link, struct ibv_qp_attr *attr,
                     int wanted)
{
    int error = attributes(v, link, attr);

    if (error)
        return error;
    if (attr->qp_state == IBV_QPS_RTR) {
        attr->min_rnr_timer = RNR_TIMER;
        /* librdmacm considers only the MTU of the requester's RoCE port. */
        if (!link->by_oob && attr->path_mtu > (enum ibv_mtu)link->mtu)
            attr->path_mtu = (enum ibv_mtu)link->mtu;
    }
    return v->api.ibv_modify_qp(link->qp, attr, wanted);
}

int trib_verbs_try_queue_pair(struct verbs *v)
{
    struct ibv_qp *qp = create_qp(v, NULL, true);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = v->port_num,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

    if (!qp)
        return errno ? errno : EINVAL;
    int error = trib_verbs_pkey_index(v, v->pkey, &attr.pkey_index);
    if (!error)
        error = v->api.ibv_modify_qp(qp, &attr, INIT_MASK);
    (void)v->api.ibv_destroy_qp(qp);
    return error;
}

uint8_t trib_verbs_port_mtu(struct verbs *v)
{
    struct ibv_port_attr port = {0};

    (void)v->api.ibv_query_port(v->context, v->port_num, (void *)&port);
    return verbs_known_mtu(port.active_mtu);
}

bool trib_verbs_port_is_active(struct verbs *v)
{
    struct ibv_port_attr port = {0};

    return v->api.ibv_query_port(v->context, v->port_num, (void *)&port) == 0 &&
           port.state == IBV_PORT_ACTIVE;
}

int trib_verbs_link_make(struct verbs *v, struct verbs_link *link,
                         struct verbs_peer *owner, bool outlet)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};

    assert(!link->qp);
    link->qp = create_qp(v, owner, outlet);
    if (!link->qp)
        return errno;
    int error = attributes(v, link, &attr);
    if (error)
        return error;
    /* Peers must not write through an outlet. */
    attr.qp_access_flags = outlet ? 0 : IBV_ACCESS_REMOTE_WRITE;
    error = v->api.ibv_modify_qp(link->qp, &attr, INIT_MASK);
    uint32_t owed = own_receives(v, outlet);
    return error ? error : trib_verbs_add_receives(v, link->qp, &owed);
}

int trib_verbs_link_ready(struct verbs *v, struct verbs_link *link)
{
    struct ibv_qp_attr receive = {.qp_state = IBV_QPS_RTR};
    struct ibv_qp_attr send = {.qp_state = IBV_QPS_RTS};

    assert(link->qp);
    int error = modify_qp(v, link, &receive, RTR_MASK);
    return error ? error : modify_qp(v, link, &send, RTS_MASK);
}

void trib_verbs_link_sever(struct verbs *v, struct verbs_link *link)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    if (link->qp)
        (void)v->api.ibv_modify_qp(link->qp, &attr, IBV_QP_STATE);
    if (link->id)
        (void)v->api.rdma_disconnect(link->id); /* fails if not connected */
    if (link->by_oob) { /* a forked child may hold oob_fd, too */
        trib_verbs_unwatch_fd(v, link->oob_fd);
        (void)shutdown(link->oob_fd, SHUT_RDWR);
        close(link->oob_fd);
        link->by_oob = false;
    }
}

void trib_verbs_link_drop(struct verbs *v, struct verbs_link *link)
{
    trib_verbs_link_sever(v, link);
    if (link->qp)
        (void)v->api.ibv_destroy_qp(link->qp);
    if (link->id)
        (void)v->api.rdma_destroy_id(link->id);
    memset(link, 0, sizeof(*link));
}

struct rdma_conn_param trib_verbs_conn_param(const struct verbs *v,
                                             const struct verbs_link *link,
                                             const void *data, size_t bytes)
{
    assert(link->qp && bytes <= UINT8_MAX);
    return (struct rdma_conn_param){
        .private_data = data,
        .private_data_len = (uint8_t)bytes,
        .responder_resources = 1,
        .initiator_depth = 1,
        .flow_control = 1,
        .retry_count = (uint8_t)v->traffic.retry_count,
        .rnr_retry_count = (uint8_t)v->traffic.rnr_retry,
        .srq = link->qp->srq != NULL,
        .qp_num = link->qp->qp_num,
    };
}

/*
 * Hash table from QP number to route. Entries are added under `links` before anything
 * can arrive. The owner looks them up without a lock. A removed entry leaves a
 * tombstone (TOMBSTONE), which is reused.
 */
#define EMPTY UINT64_C(0)
#define TOMBSTONE UINT64_MAX
#define OUTLET UINT32_C(0x80000000)

static uint32_t first_slot(const struct verbs *v, uint32_t qp_num)
{
    return qp_num * UINT32_C(0x9e3779b1) >> 7 & v->routes_mask;
}

void trib_verbs_route_put(struct verbs *v, uint32_t qp_num, struct verbs_route route)
{
    assert(verbs_links_held(v));
    assert(route.peer >= 0 && route.peer < v->size);
    uint32_t low = (uint32_t)(route.peer + 1) | (route.outlet ? OUTLET : 0);
    uint32_t at = first_slot(v, qp_num);

    for (uint32_t i = 0; i <= v->routes_mask; i++, at = (at + 1) & v->routes_mask) {
        uint64_t here = atomic_load_explicit(&v->routes[at], memory_order_relaxed);
        if (here != EMPTY && here != TOMBSTONE)
            continue;
        atomic_store_explicit(&v->routes[at], (uint64_t)qp_num << 32 | low,
                              memory_order_release);
        return;
    }
    assert(!"more than two connections of a peer");
}

/* Return the slot of a queue pair and its entry, which another thread may replace
 * meanwhile; -1: there is none. */
static int64_t slot_of(const struct verbs *v, uint32_t qp_num, uint64_t *entry)
{
    uint32_t at = first_slot(v, qp_num);

    for (uint32_t i = 0; i <= v->routes_mask; i++, at = (at + 1) & v->routes_mask) {
        uint64_t here = atomic_load_explicit(&v->routes[at], memory_order_acquire);
        if (here == EMPTY)
            return -1;
        if (here == TOMBSTONE || (uint32_t)(here >> 32) != qp_num)
            continue;
        *entry = here;
        return at;
    }
    return -1;
}

void trib_verbs_route_remove(struct verbs *v, uint32_t qp_num)
{
    uint64_t entry;
    int64_t at = slot_of(v, qp_num, &entry);

    assert(verbs_links_held(v));
    if (at >= 0)
        atomic_store_explicit(&v->routes[at], TOMBSTONE, memory_order_relaxed);
}

struct verbs_route trib_verbs_route_find(const struct verbs *v, uint32_t qp_num)
{
    uint64_t entry;

    if (slot_of(v, qp_num, &entry) < 0)
        return (struct verbs_route){.peer = -1};
    const uint32_t low = (uint32_t)entry;
    return (struct verbs_route){.peer = (int)(low & ~OUTLET) - 1,
                                .outlet = (low & OUTLET) != 0};
}

/* Handle the end of a connection. Call with `links` held. */
void trib_verbs_link_ended(struct verbs *v, struct verbs_peer *p, bool inlet,
                           struct verbs_link *trash)
{
    assert(verbs_links_held(v));
    if (inlet && !p->in_established) {
        /* The peer abandoned this attempt and may make another. */
        trib_verbs_route_remove(v, p->in.qp->qp_num);
        *trash = p->in;
        memset(&p->in, 0, sizeof(p->in));
        return;
    }
    p->gone = true;
    trib_verbs_wake_owner(v);
}
