/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue pairs of the fake: requests and receives. A request is executed
 * when it is posted; without a receive it waits at the head of its queue.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "tests/harness/fake_hub.h"

#define SENDS_MAX 4096

struct srq {
    struct ibv_srq base;
    uint64_t wr_id;
    uint32_t free, max;
};

struct send {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    uint8_t bytes[512]; /* data of an inline request */
    uint64_t due; /* ns; earliest time of execution */
};

struct qp {
    struct ibv_qp base;
    enum ibv_qp_state state;
    uint32_t remote; /* queue pair number */
    int port; /* of the device; 0: not ready yet */
    uint32_t max_send, max_inline;
    enum ibv_mtu mtu; /* of the path */
    unsigned access;
    struct send *sends; /* [SENDS_MAX], not executed yet */
    uint32_t head, tail;
    int outstanding; /* posted, and not known to be completed */
    int unreported; /* executed since the last completion */
    struct qp *next;
};

static struct qp *qps;
static uint32_t next_qp_num;
static bool held;
static enum ibv_wc_status fail_with;
static struct fake_verbs_counts counts;
static int carried[FAKE_DEVICES_MAX][FAKE_PORTS_MAX];

void fake_queues_reset(void)
{
    qps = NULL;
    next_qp_num = 17;
    held = false;
    fail_with = IBV_WC_SUCCESS;
    counts = (struct fake_verbs_counts){0};
    memset(carried, 0, sizeof(carried));
}

struct ibv_qp *fake_queue_pair(const struct ibv_context *context)
{
    for (struct qp *qp = qps; qp; qp = qp->next) {
        if (qp->base.context == context)
            return &qp->base;
    }
    return NULL;
}

/* Requests --------------------------------------------------------------------- */

static struct qp *find_qp(uint32_t number)
{
    for (struct qp *qp = qps; qp; qp = qp->next) {
        if (qp->base.qp_num == number)
            return qp;
    }
    return NULL;
}

static void report(struct qp *qp, const struct ibv_send_wr *wr,
                   enum ibv_wc_status status)
{
    struct fake_entry entry = {
        .wc = {.wr_id = wr->wr_id, .status = status, .qp_num = qp->base.qp_num},
        .outstanding = &qp->outstanding,
        .covers = ++qp->unreported,
    };

    if (status == IBV_WC_SUCCESS)
        entry.wc.opcode =
            wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM
                ? IBV_WC_SEND
                : IBV_WC_RDMA_WRITE;
    else
        entry.wc.opcode = (enum ibv_wc_opcode)0x55; /* invalid after an error */
    if (status == IBV_WC_SUCCESS && !(wr->send_flags & IBV_SEND_SIGNALED))
        return;
    qp->unreported = 0;
    fake_complete(qp->base.send_cq, &entry);
}

static void break_qp(struct qp *qp)
{
    qp->state = IBV_QPS_ERR;
    while (qp->head != qp->tail)
        report(qp, &qp->sends[qp->head++ % SENDS_MAX].wr, IBV_WC_WR_FLUSH_ERR);
}

/* An adapter writes aligned words atomically. Counters and notices, which are short,
 * are read before any event. */
static void put(void *to, const void *from, size_t len)
{
    enum { SHORT = 256 };
    _Atomic uint32_t *out = to;
    uint32_t word;

    if (len > SHORT || len % sizeof(word) != 0 || (uintptr_t)to % sizeof(word) != 0) {
        memcpy(to, from, len);
        return;
    }
    for (size_t i = 0; i < len / sizeof(word); i++) {
        memcpy(&word, (const uint8_t *)from + i * sizeof(word), sizeof(word));
        atomic_store_explicit(&out[i], word, memory_order_release);
    }
}

static enum ibv_wc_status copy(struct qp *qp, struct qp *to, const struct send *send)
{
    const struct ibv_send_wr *wr = &send->wr;
    const void *from = send->bytes;

    if (wr->num_sge == 0)
        return IBV_WC_SUCCESS;
    if (!(wr->send_flags & IBV_SEND_INLINE)) {
        const struct ibv_mr *own =
            fake_region(qp->base.pd, send->sge.lkey, send->sge.addr, send->sge.length);
        if (!own)
            return IBV_WC_LOC_PROT_ERR;
        from = fake_memory(own, send->sge.addr);
    }
    struct ibv_mr *mr = fake_region(to->base.pd, wr->wr.rdma.rkey,
                                    wr->wr.rdma.remote_addr, send->sge.length);
    if (!mr || !fake_writable(mr) || !(to->access & IBV_ACCESS_REMOTE_WRITE)) {
        fake_raise(to->base.context,
                   (struct ibv_async_event){.element.qp = &to->base,
                                            .event_type = IBV_EVENT_QP_ACCESS_ERR});
        break_qp(to);
        return IBV_WC_REM_ACCESS_ERR;
    }
    put(fake_memory(mr, wr->wr.rdma.remote_addr), from, send->sge.length);
    return IBV_WC_SUCCESS;
}

static void arrive(struct qp *to, const struct send *send)
{
    struct srq *srq = (struct srq *)to->base.srq;
    bool written = send->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    struct fake_entry entry = {
        .wc = {
            .wr_id = srq->wr_id,
            .opcode = written ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
            .qp_num = to->base.qp_num,
            .imm_data = send->wr.imm_data,
            .byte_len = send->wr.num_sge ? send->sge.length : 0,
        }};

    if (send->wr.opcode != IBV_WR_SEND)
        entry.wc.wc_flags = IBV_WC_WITH_IMM;
    srq->free--;
    fake_complete(to->base.recv_cq, &entry);
}

static bool is_up(const struct qp *qp)
{
    return fake_port_is_up(qp->base.context, qp->port);
}

/* The message's packets exceed the MTU of the other port, which drops them. */
static bool is_dropped(const struct qp *qp, const struct qp *to,
                       const struct send *send)
{
    const int most = fake_mtu_of(to->base.context);

    return (int)qp->mtu > most && send->wr.num_sge &&
           send->sge.length > 128u << most;
}

/* False: the request has to wait. */
static bool carry_out(struct qp *qp, const struct send *send)
{
    struct qp *to = find_qp(qp->remote);
    bool receives = send->wr.opcode != IBV_WR_RDMA_WRITE;
    enum ibv_wc_status status = fail_with;

    fail_with = IBV_WC_SUCCESS;
    if (status == IBV_WC_SUCCESS) {
        if (held || (send->due && !trib_deadline_passed(send->due)) || !to ||
            to->state < IBV_QPS_RTR || to->state == IBV_QPS_ERR || !is_up(qp) ||
            !is_up(to) || is_dropped(qp, to, send) ||
            (receives && ((struct srq *)to->base.srq)->free == 0))
            return false;
        status = copy(qp, to, send);
    }
    if (status == IBV_WC_SUCCESS && receives)
        arrive(to, send);
    qp->head++;
    carried[fake_device_of(qp->base.context)][qp->port - 1]++;
    report(qp, &send->wr, status);
    if (status != IBV_WC_SUCCESS)
        break_qp(qp);
    return true;
}

static void run(struct qp *qp)
{
    while (qp->state == IBV_QPS_RTS && qp->head != qp->tail &&
           carry_out(qp, &qp->sends[qp->head % SENDS_MAX]))
        continue;
}

static void run_all(void)
{
    for (struct qp *qp = qps; qp; qp = qp->next)
        run(qp);
}

void fake_queues_run(void)
{
    run_all();
}

/* Return the time of a request's execution. The transport's wr_id has the peer. */
static uint64_t due_time(const struct qp *qp, const struct ibv_send_wr *wr)
{
    const bool late = fake_opts.late_us && fake_device_of(qp->base.context) == 0 &&
                      (int)(wr->wr_id >> 32 & 0xfffffff) == fake_opts.late_peer;

    return late ? trib_now_ns() + (uint64_t)fake_opts.late_us * 1000u : 0;
}

static int enqueue(struct qp *qp, const struct ibv_send_wr *wr)
{
    struct send *send = &qp->sends[qp->tail % SENDS_MAX];

    if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_ERR)
        return EINVAL;
    if (fake_opts.iwarp && (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
                            wr->opcode == IBV_WR_SEND_WITH_IMM))
        return EINVAL;
    if (qp->outstanding >= (int)qp->max_send) {
        fake_mistake("a send queue of %u requests overflows", qp->max_send);
        return ENOMEM;
    }
    send->wr = *wr;
    send->due = due_time(qp, wr);
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
    qp->tail++;
    qp->outstanding++;
    if (qp->state == IBV_QPS_ERR)
        break_qp(qp);
    else
        run(qp);
    return 0;
}

static int post_send(struct ibv_qp *base, struct ibv_send_wr *wr,
                     struct ibv_send_wr **bad)
{
    int error = 0;

    fake_lock();
    for (; wr && !error; wr = wr->next) {
        *bad = wr;
        error = enqueue((struct qp *)base, wr);
    }
    fake_unlock();
    return error;
}

static struct ibv_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    if (fake_opts.srq_errno) {
        errno = fake_opts.srq_errno;
        return NULL;
    }
    struct srq *srq = calloc(1, sizeof(*srq));

    srq->base.pd = pd;
    srq->base.context = pd->context;
    srq->max = init->attr.max_wr;
    fake_lock();
    fake_count(1);
    fake_unlock();
    return &srq->base;
}

static int destroy_srq(struct ibv_srq *srq)
{
    fake_lock();
    for (struct qp *qp = qps; qp; qp = qp->next) {
        if (qp->base.srq == srq)
            fake_mistake("a receive queue goes before its queue pairs");
    }
    fake_count(-1);
    fake_unlock();
    free(srq);
    return 0;
}

static int post_srq_recv(struct ibv_srq *base, struct ibv_recv_wr *wr,
                         struct ibv_recv_wr **bad)
{
    struct srq *srq = (struct srq *)base;
    int error = 0;

    fake_lock();
    for (; wr; wr = wr->next) {
        *bad = wr;
        if (srq->free == srq->max) {
            fake_mistake("a receive queue of %u overflows", srq->max);
            error = ENOMEM;
            break;
        }
        srq->wr_id = wr->wr_id;
        srq->free++;
    }
    run_all();
    fake_unlock();
    return error;
}

/* Queue pairs ------------------------------------------------------------------ */

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    if (fake_opts.qp_errno || init->cap.max_inline_data > fake_opts.inline_max) {
        errno = fake_opts.qp_errno ? fake_opts.qp_errno : EINVAL;
        return NULL;
    }
    struct qp *qp = calloc(1, sizeof(*qp));
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
    qp->sends = calloc(SENDS_MAX, sizeof(*qp->sends));
    fake_lock();
    qp->base.qp_num = next_qp_num++;
    qp->next = qps;
    qps = qp;
    fake_count(1);
    fake_unlock();
    return &qp->base;
}

static bool may_become(const struct qp *qp, const struct ibv_qp_attr *attr, int mask)
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
        return qp->state == IBV_QPS_INIT && (mask & ready) == ready;
    case IBV_QPS_RTS:
        return qp->state == IBV_QPS_RTR && (mask & send) == send &&
               attr->rnr_retry == 7;
    default:
        return attr->qp_state == IBV_QPS_ERR;
    }
}

static int modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
{
    struct qp *qp = (struct qp *)base;
    int error = 0;

    fake_lock();
    if (mask & IBV_QP_AV && !fake_path_is_right(base->context, &attr->ah_attr))
        fake_mistake("nobody is at the end of that path");
    if (fake_opts.no_remote_write && mask & IBV_QP_ACCESS_FLAGS &&
        attr->qp_access_flags & IBV_ACCESS_REMOTE_WRITE) {
        error = EOPNOTSUPP;
    } else if (mask & IBV_QP_PORT &&
               (attr->port_num < 1 || attr->port_num > fake_opts.ports)) {
        fake_mistake("a queue pair on port %d of %d", attr->port_num, fake_opts.ports);
        error = EINVAL;
    } else if (!may_become(qp, attr, mask)) {
        fake_mistake("a queue pair cannot go from state %d to %d with %#x", qp->state,
                     attr->qp_state, (unsigned)mask);
        error = EINVAL;
    } else if (attr->qp_state == IBV_QPS_ERR) {
        while (fake_opts.late_ends && qp->head != qp->tail)
            report(qp, &qp->sends[qp->head++ % SENDS_MAX].wr, IBV_WC_SUCCESS);
        break_qp(qp);
    } else {
        qp->state = attr->qp_state;
        if (mask & IBV_QP_PORT)
            qp->port = attr->port_num;
        if (mask & IBV_QP_PATH_MTU)
            qp->mtu = attr->path_mtu;
        if (mask & IBV_QP_DEST_QPN)
            qp->remote = attr->dest_qp_num;
        if (mask & IBV_QP_ACCESS_FLAGS)
            qp->access = attr->qp_access_flags;
        run_all();
    }
    fake_unlock();
    return error;
}

/* Its completions stay in the queue, as on some devices. */
static int destroy_qp(struct ibv_qp *base)
{
    struct qp *qp = (struct qp *)base, **at = &qps;

    fake_lock();
    while (*at != qp)
        at = &(*at)->next;
    *at = qp->next;
    fake_cq_forget(base->send_cq, &qp->outstanding);
    fake_count(-1);
    fake_unlock();
    free(qp->sends);
    free(qp);
    return 0;
}

void fake_verbs_fail(enum ibv_wc_status status)
{
    fake_lock();
    fail_with = status;
    fake_unlock();
}

void fake_verbs_hold(bool hold)
{
    fake_lock();
    held = hold;
    run_all();
    fake_unlock();
}

int fake_verbs_carried(int device, int port)
{
    fake_lock();
    int n = carried[device][port - 1];
    fake_unlock();
    return n;
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
    fake_cq_ops(ops);
    ops->post_srq_recv = post_srq_recv;
}

void fake_queues_table(struct trib_verbs_api *api)
{
    fake_cq_table(api);
    api->ibv_create_srq = create_srq;
    api->ibv_destroy_srq = destroy_srq;
    api->ibv_create_qp = create_qp;
    api->ibv_modify_qp = modify_qp;
    api->ibv_destroy_qp = destroy_qp;
}
