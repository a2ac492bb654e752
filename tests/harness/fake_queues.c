/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue pairs of the fake: creation, state changes and posts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/fake_queue.h"

enum { BUCKETS = 1 << 14 };

static struct fake_queue *queues;
static struct fake_queue *by_number[BUCKETS];
static struct fake_verbs_counts counts;
static int refuse_after = -1;

void fake_queues_reset(void)
{
    queues = NULL;
    memset(by_number, 0, sizeof(by_number));
    counts = (struct fake_verbs_counts){0};
    refuse_after = -1;
    fake_requests_reset();
}

struct fake_queue *fake_find_queue(uint32_t number)
{
    struct fake_queue *qp = by_number[number % BUCKETS];

    while (qp && qp->base.qp_num != number)
        qp = qp->next_same;
    return qp;
}

static void insert(struct fake_queue *qp)
{
    struct fake_queue **bucket = &by_number[qp->base.qp_num % BUCKETS];

    qp->next_same = *bucket;
    *bucket = qp;
    qp->next = queues;
    qp->at = &queues;
    if (queues)
        queues->at = &qp->next;
    queues = qp;
}

static void take_out(struct fake_queue *qp)
{
    struct fake_queue **same = &by_number[qp->base.qp_num % BUCKETS];

    while (*same != qp)
        same = &(*same)->next_same;
    *same = qp->next_same;
    *qp->at = qp->next;
    if (qp->next)
        qp->next->at = qp->at;
    fake_mark_idle(qp);
}

struct ibv_qp *fake_queue_pair(const struct ibv_context *context)
{
    for (struct fake_queue *qp = queues; qp; qp = qp->next) {
        if (qp->base.context == context)
            return &qp->base;
    }
    return NULL;
}

struct ibv_qp *fake_queue_pair_of(const struct ibv_cq *cq)
{
    for (struct fake_queue *qp = queues; qp; qp = qp->next) {
        if (qp->base.send_cq == cq)
            return &qp->base;
    }
    return NULL;
}

bool fake_queues_use(const struct ibv_srq *srq)
{
    bool used = false;

    for (struct fake_queue *qp = queues; qp; qp = qp->next)
        used |= qp->base.srq == srq;
    return used;
}

void fake_queues_break(int host, int device)
{
    for (struct fake_queue *qp = queues; qp; qp = qp->next)
        if (fake_host_of(qp->base.context) == host &&
            fake_device_of(qp->base.context) == device)
            fake_break(qp);
}

/* Posts ---------------------------------------------------------------------------- */

/* Set the time of a request's execution. The transport's wr_id has the peer. */
static void set_due(struct fake_queue *qp, struct fake_send *send)
{
    const bool late = fake_opts.late_us && fake_device_of(qp->base.context) == 0 &&
                      (int)(send->wr.wr_id >> 32 & 0xfffffff) == fake_opts.late_peer;
    const size_t bytes = send->wr.num_sge ? send->sge.length : 0;

    send->wait = fake_travel(qp->base.qp_num, qp->remote, bytes);
    if (late)
        send->wait.due = (send->wait.due ? send->wait.due : fake_now()) +
                         (uint64_t)fake_opts.late_us * 1000u;
    if (!send->wait.due)
        return;
    qp->last_due = send->wait.due > qp->last_due ? send->wait.due : qp->last_due;
    send->wait.due = qp->last_due;
    fake_queues_due(send->wait.due);
}

static bool knows(const struct fake_queue *qp, enum ibv_wr_opcode opcode)
{
    return !fake_is_iwarp(qp->base.context) ||
           (opcode != IBV_WR_RDMA_WRITE_WITH_IMM && opcode != IBV_WR_SEND_WITH_IMM);
}

static int enqueue(struct fake_queue *qp, const struct ibv_send_wr *wr)
{
    struct fake_send *send = &qp->sends[qp->tail & qp->mask];

    if (refuse_after >= 0 && refuse_after-- == 0)
        return ENOMEM;
    if ((qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_ERR) ||
        !knows(qp, wr->opcode))
        return EINVAL;
    if (qp->outstanding >= (int)qp->max_send) {
        fake_mistake("a send queue of %u requests overflows", qp->max_send);
        return ENOMEM;
    }
    send->wr = *wr;
    if (wr->num_sge)
        send->sge = wr->sg_list[0];
    counts.sends++;
    counts.signalled += (wr->send_flags & IBV_SEND_SIGNALED) != 0;
    if (wr->send_flags & IBV_SEND_INLINE) {
        counts.inlined++;
        if (send->sge.length > qp->max_inline)
            return EINVAL;
        memcpy(send->bytes, (const void *)(uintptr_t)send->sge.addr, send->sge.length);
    }
    if (wr->num_sge && send->sge.length > fake_opts.message_max)
        fake_mistake("a message of %u bytes", send->sge.length);
    set_due(qp, send);
    qp->tail++;
    qp->outstanding++;
    fake_mark_busy(qp);
    fake_cq_posted(qp->base.send_cq);
    if (qp->state == IBV_QPS_ERR)
        fake_break(qp);
    else
        fake_run(qp);
    return 0;
}

static int post_send(struct ibv_qp *base, struct ibv_send_wr *wr,
                     struct ibv_send_wr **bad)
{
    int error = 0;

    fake_lock();
    counts.doorbells++;
    for (; wr && !error; wr = wr->next) {
        *bad = wr;
        error = enqueue((struct fake_queue *)base, wr);
    }
    fake_unlock();
    return error;
}

static int post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr,
                     struct ibv_recv_wr **bad)
{
    struct fake_queue *qp = (struct fake_queue *)base;

    fake_lock();
    int error = base->srq || qp->state == IBV_QPS_RESET ? EINVAL : 0;
    *bad = wr;
    if (error)
        fake_mistake("a receive for a queue pair that takes none");
    else
        error = fake_receives_post(&qp->own, wr, bad);
    if (qp->state == IBV_QPS_ERR)
        fake_break(qp);
    fake_run_all();
    fake_unlock();
    return error;
}

/* Queue pairs ---------------------------------------------------------------------- */

static bool is_refused(const struct ibv_qp_init_attr *init)
{
    errno = fake_opts.qp_errno ? fake_opts.qp_errno : EINVAL;
    return fake_opts.qp_errno || init->cap.max_inline_data > fake_opts.inline_max ||
           init->cap.max_send_wr > (uint32_t)fake_opts.max_qp_wr ||
           (!init->srq && init->cap.max_recv_wr > (uint32_t)fake_opts.max_qp_wr);
}

static struct fake_queue *new_queue(struct ibv_pd *pd,
                                    const struct ibv_qp_init_attr *init)
{
    struct fake_queue *qp = calloc(1, sizeof(*qp));

    qp->base = (struct ibv_qp){
        .context = pd->context,
        .qp_context = init->qp_context,
        .pd = pd,
        .send_cq = init->send_cq,
        .recv_cq = init->recv_cq,
        .srq = init->srq,
        .qp_type = init->qp_type,
    };
    qp->max_send = init->cap.max_send_wr;
    qp->max_inline = init->cap.max_inline_data;
    while (qp->mask + 1 < qp->max_send)
        qp->mask = 2 * qp->mask + 1;
    qp->sends = calloc(qp->mask + 1, sizeof(*qp->sends));
    if (!init->srq)
        fake_receives_make(&qp->own, init->cap.max_recv_wr);
    return qp;
}

static void free_queue(struct fake_queue *qp)
{
    fake_receives_free(&qp->own);
    free(qp->sends);
    free(qp);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    if (is_refused(init))
        return NULL;
    struct fake_queue *qp = new_queue(pd, init);
    fake_lock();
    const bool fits = fake_use(pd->context, (struct fake_usage){.qps = 1});
    if (fits) {
        qp->base.qp_num = fake_hub->next_qp_num++;
        *fake_qp_row(qp->base.qp_num) =
            (struct fake_qp){.number = qp->base.qp_num,
                             .process = fake_self(),
                             .host = fake_host_of(pd->context),
                             .device = fake_device_of(pd->context),
                             .live = true,
                             .has_srq = init->srq != NULL,
                             .max_send_wr = init->cap.max_send_wr,
                             .max_recv_wr = init->srq ? 0 : init->cap.max_recv_wr};
        insert(qp);
        fake_count(1);
    }
    fake_unlock();
    if (fits)
        return &qp->base;
    free_queue(qp);
    errno = ENOMEM;
    return NULL;
}

static bool may_become(const struct fake_queue *qp, const struct ibv_qp_attr *attr,
                       int mask)
{
    static const int ready = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                             IBV_QP_MIN_RNR_TIMER;
    static const int send = IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                            IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

    switch (attr->qp_state) {
    case IBV_QPS_INIT:
        return qp->state == IBV_QPS_RESET && mask & IBV_QP_PORT;
    case IBV_QPS_RTR:
        return qp->state == IBV_QPS_INIT && (mask & ready) == ready &&
               attr->min_rnr_timer < 32;
    case IBV_QPS_RTS:
        return qp->state == IBV_QPS_RTR && (mask & send) == send &&
               attr->timeout < 32 && attr->retry_cnt < 8 && attr->rnr_retry < 8;
    default:
        return attr->qp_state == IBV_QPS_ERR;
    }
}

static void record_path(struct fake_qp *row, const struct ibv_ah_attr *path)
{
    row->dlid = path->dlid;
    row->sl = path->sl;
    row->traffic_class = path->grh.traffic_class;
    row->hop_limit = path->grh.hop_limit;
    row->sgid_index = path->grh.sgid_index;
    row->flow_label = path->grh.flow_label;
}

/* Take over the attributes of a change. */
static void change(struct fake_queue *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct fake_qp *row = fake_qp_row(qp->base.qp_num);

    qp->state = row->state = attr->qp_state;
    if (mask & IBV_QP_PORT) {
        row->port = qp->port = attr->port_num;
        row->port_mtu = (enum ibv_mtu)fake_mtu_of(qp->base.context, qp->port);
        row->pkey = fake_context_port(qp->base.context, qp->port)
                        ->opts.pkeys[mask & IBV_QP_PKEY_INDEX ? attr->pkey_index : 0];
    }
    if (mask & IBV_QP_AV)
        record_path(row, &attr->ah_attr);
    if (mask & IBV_QP_PATH_MTU)
        row->mtu = attr->path_mtu;
    if (mask & IBV_QP_DEST_QPN)
        row->remote = qp->remote = attr->dest_qp_num;
    if (mask & IBV_QP_ACCESS_FLAGS)
        qp->access = attr->qp_access_flags;
    if (mask & IBV_QP_MIN_RNR_TIMER)
        row->min_rnr_timer = attr->min_rnr_timer;
    if (mask & IBV_QP_TIMEOUT)
        row->timeout = attr->timeout;
    if (mask & IBV_QP_RETRY_CNT)
        row->retry_cnt = attr->retry_cnt;
    if (mask & IBV_QP_RNR_RETRY)
        row->rnr_retry = attr->rnr_retry;
    fake_run_all();
}

/* Return why a device refuses a change, or 0. */
static int check_change(const struct fake_queue *qp, const struct ibv_qp_attr *attr,
                        int mask)
{
    if (mask & IBV_QP_AV && !fake_path_is_right(qp->base.context, &attr->ah_attr))
        fake_mistake("no port has the address of that path");
    if (fake_opts.no_remote_write && mask & IBV_QP_ACCESS_FLAGS &&
        attr->qp_access_flags & IBV_ACCESS_REMOTE_WRITE)
        return EOPNOTSUPP;
    if (mask & IBV_QP_PORT &&
        (attr->port_num < 1 || attr->port_num > fake_opts.ports)) {
        fake_mistake("a queue pair on port %d of %d", attr->port_num, fake_opts.ports);
        return EINVAL;
    }
    if (mask & IBV_QP_PKEY_INDEX &&
        (attr->pkey_index >= FAKE_PKEYS ||
         !fake_context_port(qp->base.context, attr->port_num)
              ->opts.pkeys[attr->pkey_index])) {
        fake_mistake("no partition has index %d", attr->pkey_index);
        return EINVAL;
    }
    if (may_become(qp, attr, mask))
        return 0;
    fake_mistake("a queue pair cannot go from state %d to %d with %#x", qp->state,
                 attr->qp_state, (unsigned)mask);
    return EINVAL;
}

int ibv_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
{
    struct fake_queue *qp = (struct fake_queue *)base;

    fake_lock();
    const int error = check_change(qp, attr, mask);
    if (!error && attr->qp_state == IBV_QPS_ERR) {
        while (fake_opts.late_ends && qp->head != qp->tail)
            fake_report(qp, &qp->sends[qp->head++ & qp->mask].wr, IBV_WC_SUCCESS);
        fake_break(qp);
    } else if (!error) {
        change(qp, attr, mask);
    }
    fake_unlock();
    return error;
}

/* Its completions stay in the queue, as on some devices. */
int ibv_destroy_qp(struct ibv_qp *base)
{
    struct fake_queue *qp = (struct fake_queue *)base;

    fake_lock();
    take_out(qp);
    fake_events_forget(base->context, base);
    fake_cq_forget(base->send_cq, &qp->outstanding);
    fake_return_requests(qp);
    fake_qp_row(base->qp_num)->live = false;
    fake_unuse(base->context, (struct fake_usage){.qps = 1});
    fake_count(-1);
    fake_unlock();
    free_queue(qp);
    return 0;
}

int fake_verbs_carried(int device, int port)
{
    fake_lock();
    int n = fake_port(fake_host(), device, port)->carried;
    fake_unlock();
    return n;
}

void fake_verbs_refuse(int after)
{
    fake_lock();
    refuse_after = after;
    fake_unlock();
}

struct fake_verbs_counts fake_verbs_posted(void)
{
    fake_lock();
    struct fake_verbs_counts c = counts;
    fake_unlock();
    return c;
}

void fake_queues_ops(struct ibv_context_ops *ops)
{
    ops->post_send = post_send;
    ops->post_recv = post_recv;
    fake_cq_ops(ops);
    ops->post_srq_recv = fake_post_srq_recv;
}
