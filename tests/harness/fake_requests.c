/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of the fake. A request to this process is executed when its time has come;
 * without a receive it waits at the head of its queue. A request to another process is
 * a message, and that process sends its result.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/fake_queue.h"

static struct fake_queue *busy;
static struct fake_list orphans; /* requests to destroyed queue pairs */
static bool held;
#define next_due (fake_hub->processes[fake_self()].next_due)
static enum ibv_wc_status fail_with;

void fake_requests_reset(void)
{
    busy = NULL;
    orphans = (struct fake_list){0};
    next_due = UINT64_MAX;
    held = false;
    fail_with = IBV_WC_SUCCESS;
}

void fake_mark_busy(struct fake_queue *qp)
{
    if (qp->busy_at)
        return;
    qp->next_busy = busy;
    qp->busy_at = &busy;
    if (busy)
        busy->busy_at = &qp->next_busy;
    busy = qp;
}

void fake_mark_idle(struct fake_queue *qp)
{
    if (!qp->busy_at)
        return;
    *qp->busy_at = qp->next_busy;
    if (qp->next_busy)
        qp->next_busy->busy_at = qp->busy_at;
    qp->busy_at = NULL;
}

void fake_report(struct fake_queue *qp, const struct ibv_send_wr *wr,
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

/* Flush the receives of a broken queue pair, unless its receive queue is shared. */
static void flush_receives(struct fake_queue *qp)
{
    struct fake_receive receive;

    while (fake_receives_take(&qp->own, &receive)) {
        const struct fake_entry entry = {.wc = {.wr_id = receive.wr_id,
                                                .status = IBV_WC_WR_FLUSH_ERR,
                                                .opcode = (enum ibv_wc_opcode)0x55,
                                                .qp_num = qp->base.qp_num}};
        fake_complete(qp->base.recv_cq, &entry);
    }
}

void fake_break(struct fake_queue *qp)
{
    qp->state = IBV_QPS_ERR;
    fake_qp_row(qp->base.qp_num)->state = IBV_QPS_ERR;
    while (qp->head != qp->tail)
        fake_report(qp, &qp->sends[qp->head++ & qp->mask].wr, IBV_WC_WR_FLUSH_ERR);
    qp->pushed = qp->tail;
    flush_receives(qp);
}

static void raise_access_error(struct fake_queue *to)
{
    fake_raise(to->base.context,
               (struct ibv_async_event){.element.qp = &to->base,
                                        .event_type = IBV_EVENT_QP_ACCESS_ERR});
    fake_break(to);
}

/* Delivery ------------------------------------------------------------------------- */

static enum ibv_wc_status write_to(struct fake_queue *to, const struct fake_request *r,
                                   const struct fake_source *source)
{
    if (r->len == 0)
        return IBV_WC_SUCCESS;
    struct ibv_mr *mr = fake_region(to->base.pd, r->rkey, r->to, r->len);
    if (!mr || !fake_writable(mr) || !(to->access & IBV_ACCESS_REMOTE_WRITE)) {
        raise_access_error(to);
        return IBV_WC_REM_ACCESS_ERR;
    }
    return fake_put(source, mr, r->to, r) ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR;
}

static enum ibv_wc_status send_to(struct fake_queue *to, const struct fake_request *r,
                                  const struct fake_source *source,
                                  const struct ibv_sge *into)
{
    if (r->len == 0)
        return IBV_WC_SUCCESS;
    struct ibv_mr *mr = r->len <= into->length
                            ? fake_region(to->base.pd, into->lkey, into->addr, r->len)
                            : NULL;
    if (!mr) {
        raise_access_error(to);
        return IBV_WC_REM_INV_REQ_ERR;
    }
    return fake_put(source, mr, into->addr, r) ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR;
}

static bool is_send(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
}

/* Write the bytes and complete a receive. */
static enum ibv_wc_status arrive(struct fake_queue *to, const struct fake_request *r,
                                 const struct fake_source *source)
{
    const bool sent = is_send(r->opcode);
    struct fake_receive receive = {0};

    if (r->opcode != IBV_WR_RDMA_WRITE)
        (void)fake_receives_take(fake_receives_of(to), &receive);
    const enum ibv_wc_status status =
        sent ? send_to(to, r, source, &receive.sge) : write_to(to, r, source);
    if (status != IBV_WC_SUCCESS || r->opcode == IBV_WR_RDMA_WRITE)
        return status;
    struct fake_entry entry = {
        .wc = {
            .wr_id = receive.wr_id,
            .opcode = sent ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
            .qp_num = to->base.qp_num,
            .imm_data = r->imm,
            .byte_len = r->len,
        }};
    if (r->opcode != IBV_WR_SEND)
        entry.wc.wc_flags = IBV_WC_WITH_IMM;
    fake_complete(to->base.recv_cq, &entry);
    return status;
}

static bool is_up(const struct fake_queue *qp)
{
    return fake_port_is_up(qp->base.context, qp->port);
}

enum { WAITS = -1 };

/* Return the status of a request at its receiver, or WAITS. */
static int deliver(struct fake_queue *to, uint32_t from, const struct fake_request *r,
                   const struct fake_source *source, struct fake_wait *wait)
{
    if (wait->is_lost)
        return IBV_WC_RETRY_EXC_ERR;
    if (!to || to->state < IBV_QPS_RTR || to->state == IBV_QPS_ERR)
        return WAITS;
    if (!is_up(to) && !fake_opts.down_fails)
        return WAITS;
    if (!is_up(to) || !fake_can_reach(from, to->base.qp_num, r))
        return fake_gave_up(from, wait) ? IBV_WC_RETRY_EXC_ERR : WAITS;
    wait->dead = 0;
    if (r->opcode != IBV_WR_RDMA_WRITE && fake_receives_of(to)->n == 0)
        return fake_not_ready(from, to->base.qp_num, wait) ? IBV_WC_RNR_RETRY_EXC_ERR
                                                           : WAITS;
    fake_count_arrival(from, to->base.qp_num, r);
    return (int)arrive(to, r, source);
}

/* True: the time of a request has not come. Without other delays, a receive ends the
 * wait for one. */
static bool is_early(struct fake_queue *to, const struct fake_wait *wait)
{
    if (held)
        return true;
    if (wait->due == 0 || fake_now() >= wait->due)
        return false;
    return !wait->naks || fake_is_timed() || !to || fake_receives_of(to)->n == 0;
}

/* Requests of this process --------------------------------------------------------- */

static struct fake_request request_of(const struct fake_queue *qp,
                                      const struct fake_send *send)
{
    return (struct fake_request){
        .opcode = send->wr.opcode,
        .is_inline = (send->wr.send_flags & IBV_SEND_INLINE) != 0,
        .imm = send->wr.imm_data,
        .rkey = send->wr.wr.rdma.rkey,
        .len = send->wr.num_sge ? send->sge.length : 0,
        .from = send->sge.addr,
        .to = send->wr.wr.rdma.remote_addr,
        .mtu = fake_qp_row(qp->base.qp_num)->mtu,
    };
}

/* Return the region of a request's bytes, or NULL if they are not registered. */
static const struct ibv_mr *region_of(const struct fake_queue *qp,
                                      const struct fake_send *send)
{
    if (send->wr.num_sge == 0 || send->wr.send_flags & IBV_SEND_INLINE)
        return NULL;
    return fake_region(qp->base.pd, send->sge.lkey, send->sge.addr, send->sge.length);
}

/* Return the bytes of a request, or NULL if they are not registered. */
static const void *bytes_of(const struct fake_queue *qp, const struct fake_send *send)
{
    const struct ibv_mr *own = region_of(qp, send);

    if (send->wr.num_sge == 0 || send->wr.send_flags & IBV_SEND_INLINE)
        return send->bytes;
    return own ? fake_memory(own, send->sge.addr) : NULL;
}

static void end_request(struct fake_queue *qp, enum ibv_wc_status status)
{
    const struct fake_send *send = &qp->sends[qp->head++ & qp->mask];

    fake_port_of(qp->base.qp_num)->carried++;
    fake_report(qp, &send->wr, status);
    if (status != IBV_WC_SUCCESS)
        fake_break(qp);
}

/* A port that is down carries nothing. Return true if a request ended with that. */
static bool ends_at_down_port(struct fake_queue *qp, struct fake_send *send)
{
    if (!fake_opts.down_fails || !fake_gave_up(qp->base.qp_num, &send->wait))
        return false;
    end_request(qp, IBV_WC_RETRY_EXC_ERR);
    return true;
}

/* False: the request has to wait. */
static bool carry_out(struct fake_queue *qp, struct fake_send *send)
{
    struct fake_queue *to = fake_find_queue(qp->remote);
    const struct fake_source source = {.bytes = bytes_of(qp, send),
                                       .mr = region_of(qp, send)};
    const struct fake_request r = request_of(qp, send);
    int status = fail_with;

    fail_with = IBV_WC_SUCCESS;
    if (status == IBV_WC_SUCCESS) {
        if (is_early(to, &send->wait))
            return false;
        if (!is_up(qp))
            return ends_at_down_port(qp, send);
        status = source.bytes ? deliver(to, qp->base.qp_num, &r, &source, &send->wait)
                              : IBV_WC_LOC_PROT_ERR;
    }
    if (status == WAITS)
        return false;
    end_request(qp, status);
    return true;
}

/* Send the requests of a queue pair to another process. */
static void push(struct fake_queue *qp, int process)
{
    while (qp->state == IBV_QPS_RTS && qp->pushed != qp->tail && !held && is_up(qp)) {
        const struct fake_send *send = &qp->sends[qp->pushed & qp->mask];
        const void *bytes = bytes_of(qp, send);
        struct fake_message m = {.kind = FAKE_REQUEST,
                                 .to_id = qp->remote,
                                 .from_id = qp->base.qp_num,
                                 .seq = qp->pushed,
                                 .wait = send->wait,
                                 .request = request_of(qp, send)};
        if (!bytes) { /* after the requests before it */
            if (qp->head == qp->pushed)
                end_request(qp, IBV_WC_LOC_PROT_ERR);
            return;
        }
        m.wait.dead = 0;
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
static void check_end(struct fake_queue *qp, int process)
{
    if (qp->state == IBV_QPS_RTS && qp->head != qp->tail && fake_has_ended(process))
        end_request(qp, IBV_WC_RETRY_EXC_ERR);
}

/* Return the process of the other queue pair. */
static int process_of(const struct fake_queue *qp)
{
    return qp->remote ? fake_qp_row(qp->remote)->process : fake_self();
}

void fake_run(struct fake_queue *qp)
{
    const int process = process_of(qp);

    if (qp->state != IBV_QPS_RTS || qp->head == qp->tail)
        return;
    if (fake_opts.gid_loss == 2 && !fake_has_gid(fake_qp_row(qp->base.qp_num))) {
        end_request(qp, IBV_WC_LOC_QP_OP_ERR);
        return;
    }
    if (process != fake_self()) {
        push(qp, process);
        if (qp->pushed == qp->head && qp->head != qp->tail && !is_up(qp))
            (void)ends_at_down_port(qp, &qp->sends[qp->head & qp->mask]);
        check_end(qp, process);
        return;
    }
    while (qp->state == IBV_QPS_RTS && qp->head != qp->tail &&
           carry_out(qp, &qp->sends[qp->head & qp->mask]))
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
    struct fake_queue *qp = fake_find_queue(m->to_id);

    if (qp && qp->state == IBV_QPS_RTS && qp->head == m->seq)
        end_request(qp, m->status);
}

bool fake_queues_request(uint32_t row)
{
    struct fake_message *m = fake_message(row);
    struct fake_queue *to = fake_find_queue(m->to_id);

    if (to && to->state != IBV_QPS_ERR) {
        fake_append(&to->inbox, row);
        fake_mark_busy(to);
        return true;
    }
    m->wait.due = fake_now() + fake_opts.retry_us * UINT64_C(1000);
    fake_append(&orphans, row);
    return true;
}

static void receive(struct fake_queue *to)
{
    while (to->inbox.head) {
        struct fake_message *m = fake_message(to->inbox.head);
        const struct fake_source source = {
            .process = m->from, .bytes = m->request.is_inline ? m->bytes : NULL};
        if (to->state == IBV_QPS_ERR) {
            send_result(m, IBV_WC_RETRY_EXC_ERR);
            fake_drop(&to->inbox);
            continue;
        }
        if (is_early(to, &m->wait))
            return;
        const int status = deliver(to, m->from_id, &m->request, &source, &m->wait);
        if (status == WAITS)
            return;
        send_result(m, status);
        fake_drop(&to->inbox);
    }
}

void fake_return_requests(struct fake_queue *qp)
{
    while (qp->inbox.head) {
        send_result(fake_message(qp->inbox.head), IBV_WC_RETRY_EXC_ERR);
        fake_drop(&qp->inbox);
    }
}

static void return_orphans(void)
{
    while (orphans.head && fake_now() >= fake_message(orphans.head)->wait.due) {
        send_result(fake_message(orphans.head), IBV_WC_RETRY_EXC_ERR);
        fake_drop(&orphans);
    }
}

/* All ------------------------------------------------------------------------------ */

/* Return the next time at which a request changes that was waiting at `now`. */
static uint64_t time_of(const struct fake_wait *wait, uint64_t now)
{
    const uint64_t due = wait->due > now ? wait->due : UINT64_MAX;

    return wait->dead && wait->dead < due ? wait->dead : due;
}

static void note_due(const struct fake_queue *qp, uint64_t now)
{
    uint64_t due = UINT64_MAX, other = UINT64_MAX;

    if (qp->head != qp->tail &&
        (qp->pushed == qp->head || process_of(qp) == fake_self()))
        due = time_of(&qp->sends[qp->head & qp->mask].wait, now);
    if (qp->inbox.head)
        other = time_of(&fake_message(qp->inbox.head)->wait, now);
    due = due < other ? due : other;
    next_due = due < next_due ? due : next_due;
}

void fake_run_all(void)
{
    const uint64_t now = fake_now();
    struct fake_queue *next;

    next_due = UINT64_MAX;
    for (struct fake_queue *qp = busy; qp; qp = next) {
        fake_run(qp);
        receive(qp);
        note_due(qp, now);
        next = qp->next_busy;
        if (qp->head == qp->tail && !qp->inbox.head)
            fake_mark_idle(qp);
    }
    return_orphans();
    if (orphans.head && fake_message(orphans.head)->wait.due < next_due)
        next_due = fake_message(orphans.head)->wait.due;
}

uint64_t fake_queues_run(void)
{
    fake_run_all();
    return next_due;
}

void fake_queues_due(uint64_t due)
{
    if (!due || due >= next_due)
        return;
    next_due = due;
    if (fake_hub->is_timed && !fake_opts.virtual_time)
        fake_wake(fake_self());
}

void fake_queues_poll(void)
{
    if (next_due != UINT64_MAX && fake_now() >= next_due)
        fake_run_all();
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
    fake_run_all();
    fake_unlock();
}
