/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue pairs of the fake: requests and receives. A request to this process is
 * executed when it is posted; without a receive it waits at the head of its queue. A
 * request to another process is a message, and that process sends its result.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "tests/harness/fake_hub.h"

enum { SENDS_MAX = 4096 };

struct send {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    uint8_t bytes[FAKE_INLINE_MAX]; /* data of an inline request */
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
    uint32_t pushed; /* requests before this one are with the other process */
    uint64_t last_due; /* ns */
    struct fake_list inbox; /* requests of another process to this queue pair */
    struct fake_srq own; /* its receives, without a shared queue */
    int outstanding; /* posted, and not known to be completed */
    int unreported; /* executed since the last completion */
    struct qp *next;
};

static struct qp *qps;
static struct fake_list orphans; /* requests to queue pairs that are gone */
static bool held;
static enum ibv_wc_status fail_with;
static struct fake_verbs_counts counts;

void fake_queues_reset(void)
{
    qps = NULL;
    orphans = (struct fake_list){0};
    held = false;
    fail_with = IBV_WC_SUCCESS;
    counts = (struct fake_verbs_counts){0};
}

struct ibv_qp *fake_queue_pair(const struct ibv_context *context)
{
    for (struct qp *qp = qps; qp; qp = qp->next) {
        if (qp->base.context == context)
            return &qp->base;
    }
    return NULL;
}

bool fake_queues_use(const struct ibv_srq *srq)
{
    bool used = false;

    for (struct qp *qp = qps; qp; qp = qp->next)
        used |= qp->base.srq == srq;
    return used;
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

static struct fake_srq *receives_of(struct qp *qp)
{
    return qp->base.srq ? (struct fake_srq *)qp->base.srq : &qp->own;
}

static void break_qp(struct qp *qp)
{
    qp->state = IBV_QPS_ERR;
    fake_flush_receives(&qp->base, &qp->own);
    while (qp->head != qp->tail)
        report(qp, &qp->sends[qp->head++ % SENDS_MAX].wr, IBV_WC_WR_FLUSH_ERR);
    qp->pushed = qp->tail;
}

static enum ibv_wc_status write_to(struct qp *to, const struct fake_request *r,
                                   const struct fake_source *source)
{
    if (r->len == 0)
        return IBV_WC_SUCCESS;
    struct ibv_mr *mr = fake_region(to->base.pd, r->rkey, r->to, r->len);
    if (!mr || !fake_writable(mr) || !(to->access & IBV_ACCESS_REMOTE_WRITE)) {
        fake_raise(to->base.context,
                   (struct ibv_async_event){.element.qp = &to->base,
                                            .event_type = IBV_EVENT_QP_ACCESS_ERR});
        break_qp(to);
        return IBV_WC_REM_ACCESS_ERR;
    }
    return fake_put(source, fake_memory(mr, r->to), r) ? IBV_WC_SUCCESS
                                                       : IBV_WC_RETRY_EXC_ERR;
}

static void arrive(struct qp *to, const struct fake_request *r)
{
    struct fake_srq *srq = receives_of(to);
    bool written = r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    struct fake_entry entry = {
        .wc = {
            .wr_id = srq->wr_id,
            .opcode = written ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
            .qp_num = to->base.qp_num,
            .imm_data = r->imm,
            .byte_len = r->len,
        }};

    if (r->opcode != IBV_WR_SEND)
        entry.wc.wc_flags = IBV_WC_WITH_IMM;
    srq->free--;
    fake_complete(to->base.recv_cq, &entry);
}

static bool is_up(const struct qp *qp)
{
    return fake_port_is_up(qp->base.context, qp->port);
}

/* The message's packets exceed the MTU of this port, which drops them. */
static bool is_dropped(const struct qp *to, const struct fake_request *r)
{
    const int most = fake_mtu_of(to->base.context);

    return (int)r->mtu > most && r->len > 128u << most;
}

enum { WAITS = -1 };

/* Return the status of a request at its receiver, or WAITS. */
static int deliver(struct qp *to, const struct fake_request *r,
                   const struct fake_source *source)
{
    const bool receives = r->opcode != IBV_WR_RDMA_WRITE;

    if (!to || to->state < IBV_QPS_RTR || to->state == IBV_QPS_ERR || !is_up(to) ||
        is_dropped(to, r) || (receives && receives_of(to)->free == 0))
        return WAITS;
    const enum ibv_wc_status status = write_to(to, r, source);
    if (status == IBV_WC_SUCCESS && receives)
        arrive(to, r);
    return status;
}

static struct fake_request request_of(const struct qp *qp, const struct send *send)
{
    return (struct fake_request){
        .opcode = send->wr.opcode,
        .is_inline = (send->wr.send_flags & IBV_SEND_INLINE) != 0,
        .imm = send->wr.imm_data,
        .rkey = send->wr.wr.rdma.rkey,
        .len = send->wr.num_sge ? send->sge.length : 0,
        .from = send->sge.addr,
        .to = send->wr.wr.rdma.remote_addr,
        .mtu = qp->mtu,
    };
}

/* Return the bytes of a request, or NULL if they are not registered. */
static const void *bytes_of(const struct qp *qp, const struct send *send)
{
    if (send->wr.num_sge == 0 || send->wr.send_flags & IBV_SEND_INLINE)
        return send->bytes;
    const struct ibv_mr *own =
        fake_region(qp->base.pd, send->sge.lkey, send->sge.addr, send->sge.length);
    return own ? fake_memory(own, send->sge.addr) : NULL;
}

static void end_request(struct qp *qp, enum ibv_wc_status status)
{
    const struct send *send = &qp->sends[qp->head++ % SENDS_MAX];

    fake_port_of(qp->base.qp_num)->carried++;
    report(qp, &send->wr, status);
    if (status != IBV_WC_SUCCESS)
        break_qp(qp);
}

/* False: the request has to wait. */
static bool carry_out(struct qp *qp, const struct send *send)
{
    const struct fake_source source = {.bytes = bytes_of(qp, send)};
    const struct fake_request r = request_of(qp, send);
    int status = fail_with;

    fail_with = IBV_WC_SUCCESS;
    if (status == IBV_WC_SUCCESS) {
        if (held || (send->due && !trib_deadline_passed(send->due)) || !is_up(qp))
            return false;
        status = source.bytes ? deliver(find_qp(qp->remote), &r, &source)
                              : IBV_WC_LOC_PROT_ERR;
    }
    if (status == WAITS)
        return false;
    end_request(qp, status);
    return true;
}

/* Send the requests of a queue pair to another process. */
static void push(struct qp *qp, int process)
{
    while (qp->state == IBV_QPS_RTS && qp->pushed != qp->tail && !held && is_up(qp)) {
        const struct send *send = &qp->sends[qp->pushed % SENDS_MAX];
        const void *bytes = bytes_of(qp, send);
        struct fake_message m = {.kind = FAKE_REQUEST,
                                 .to_id = qp->remote,
                                 .from_id = qp->base.qp_num,
                                 .seq = qp->pushed,
                                 .due = send->due,
                                 .request = request_of(qp, send)};
        if (!bytes) { /* after the requests before it */
            if (qp->head == qp->pushed)
                end_request(qp, IBV_WC_LOC_PROT_ERR);
            return;
        }
        if (m.request.is_inline)
            memcpy(m.bytes, bytes, m.request.len);
        else
            m.request.from = (uintptr_t)bytes;
        if (!fake_send(process, &m))
            return;
        qp->pushed++;
    }
}

/* The receiver has ended: as on a device, retransmissions show it. */
static void check_end(struct qp *qp, int process)
{
    if (qp->state == IBV_QPS_RTS && qp->head != qp->tail && fake_has_ended(process))
        end_request(qp, IBV_WC_RETRY_EXC_ERR);
}

static void run(struct qp *qp)
{
    const int process =
        qp->remote ? fake_hub->qps[qp->remote % FAKE_QPS_MAX].process : fake_self();

    if (process != fake_self()) {
        push(qp, process);
        check_end(qp, process);
        return;
    }
    while (qp->state == IBV_QPS_RTS && qp->head != qp->tail &&
           carry_out(qp, &qp->sends[qp->head % SENDS_MAX]))
        continue;
}

/* Requests of other processes ---------------------------------------------------- */

static void send_result(const struct fake_message *request, enum ibv_wc_status status)
{
    const struct fake_message m = {.kind = FAKE_RESULT,
                                   .to_id = request->from_id,
                                   .seq = request->seq,
                                   .status = status};

    if (!fake_send(request->from, &m))
        fake_mistake("no room for the result of a request");
}

void fake_queues_result(const struct fake_message *m)
{
    struct qp *qp = find_qp(m->to_id);

    if (qp && qp->state == IBV_QPS_RTS && qp->head == m->seq)
        end_request(qp, m->status);
}

bool fake_queues_request(uint32_t row)
{
    struct fake_message *m = fake_message(row);
    struct qp *to = find_qp(m->to_id);

    if (to && to->state != IBV_QPS_ERR) {
        fake_append(&to->inbox, row);
        return true;
    }
    m->due = trib_now_ns() + fake_opts.retry_us * UINT64_C(1000);
    fake_append(&orphans, row);
    return true;
}

static void receive(struct qp *to)
{
    while (to->inbox.head) {
        const struct fake_message *m = fake_message(to->inbox.head);
        const struct fake_source source = {
            .process = m->from, .bytes = m->request.is_inline ? m->bytes : NULL};
        if (to->state == IBV_QPS_ERR) {
            send_result(m, IBV_WC_RETRY_EXC_ERR);
            fake_drop(&to->inbox);
            continue;
        }
        if (held || (m->due && !trib_deadline_passed(m->due)))
            return;
        const int status = deliver(to, &m->request, &source);
        if (status == WAITS)
            return;
        send_result(m, status);
        fake_drop(&to->inbox);
    }
}

static void return_orphans(void)
{
    while (orphans.head && trib_deadline_passed(fake_message(orphans.head)->due)) {
        send_result(fake_message(orphans.head), IBV_WC_RETRY_EXC_ERR);
        fake_drop(&orphans);
    }
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return b && b < a ? b : a;
}

static void run_all(void)
{
    for (struct qp *qp = qps; qp; qp = qp->next) {
        run(qp);
        receive(qp);
    }
    return_orphans();
}

uint64_t fake_queues_run(void)
{
    uint64_t due = UINT64_MAX;

    run_all();
    for (struct qp *qp = qps; qp; qp = qp->next) {
        if (qp->head != qp->tail && qp->pushed == qp->head)
            due = earlier(due, qp->sends[qp->head % SENDS_MAX].due);
        if (qp->inbox.head)
            due = earlier(due, fake_message(qp->inbox.head)->due);
    }
    if (orphans.head)
        due = earlier(due, fake_message(orphans.head)->due);
    return due;
}

/* Return the time of a request's execution, or 0. The transport's wr_id has the
 * peer. */
static uint64_t due_time(struct qp *qp, const struct ibv_send_wr *wr)
{
    const bool late = fake_opts.late_us && fake_device_of(qp->base.context) == 0 &&
                      (int)(wr->wr_id >> 32 & 0xfffffff) == fake_opts.late_peer;
    struct fake_port *from = fake_port_of(qp->base.qp_num);
    struct fake_port *to = fake_port_of(qp->remote);
    uint64_t due = 0;

    if (from && to && (fake_opts.rate || fake_opts.delay_us))
        due = fake_carry(from, to, wr->num_sge ? wr->sg_list[0].length : 0);
    if (late)
        due = (due ? due : trib_now_ns()) + (uint64_t)fake_opts.late_us * 1000u;
    if (due)
        qp->last_due = due > qp->last_due ? due : qp->last_due;
    return due ? qp->last_due : 0;
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

/* Queue pairs ------------------------------------------------------------------ */

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
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
    qp->own.max = init->cap.max_recv_wr;
    qp->sends = calloc(SENDS_MAX, sizeof(*qp->sends));
    fake_lock();
    qp->base.qp_num = fake_hub->next_qp_num++;
    fake_hub->qps[qp->base.qp_num % FAKE_QPS_MAX] =
        (struct fake_owner){.process = fake_self(),
                            .host = fake_host(),
                            .device = fake_device_of(pd->context)};
    qp->next = qps;
    qps = qp;
    fake_count(1);
    fake_unlock();
    return &qp->base;
}

int ibv_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
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
    } else if (!fake_may_become(qp->state, attr, mask)) {
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
            fake_hub->qps[base->qp_num % FAKE_QPS_MAX].port = qp->port = attr->port_num;
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
int ibv_destroy_qp(struct ibv_qp *base)
{
    struct qp *qp = (struct qp *)base, **at = &qps;

    fake_lock();
    while (*at != qp)
        at = &(*at)->next;
    *at = qp->next;
    fake_cq_forget(base->send_cq, &qp->outstanding);
    while (qp->inbox.head) {
        send_result(fake_message(qp->inbox.head), IBV_WC_RETRY_EXC_ERR);
        fake_drop(&qp->inbox);
    }
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

struct fake_verbs_counts fake_verbs_posted(void)
{
    fake_lock();
    struct fake_verbs_counts c = counts;
    fake_unlock();
    return c;
}

static int post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr,
                     struct ibv_recv_wr **bad)
{
    struct qp *qp = (struct qp *)base;

    fake_lock();
    const int error = fake_add_receives(&qp->own, wr, bad);
    if (qp->state == IBV_QPS_ERR)
        fake_flush_receives(base, &qp->own);
    run_all();
    fake_unlock();
    return error;
}

void fake_queues_ops(struct ibv_context_ops *ops)
{
    ops->post_recv = post_recv;
    ops->post_send = post_send;
    fake_cq_ops(ops);
    ops->post_srq_recv = fake_post_srq_recv;
}
