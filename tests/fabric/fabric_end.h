/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs of the fake, without a transport: two ends on two hosts.
 */
#ifndef TESTS_FABRIC_FABRIC_END_H
#define TESTS_FABRIC_FABRIC_END_H

#include "tests/harness/fake_verbs.h"
#include "tests/harness/tribtest.h"

#include "base/time.h"

enum { END_BYTES = 1 << 16, END_SENDS = 64, END_RECEIVES = 64 };

struct end {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint8_t *mem; /* END_BYTES */
};

/* How a queue pair is made and connected. */
struct end_opts {
    bool no_srq;
    uint8_t port; /* 0: 1 */
    uint16_t pkey_index;
    struct ibv_qp_attr attr; /* of the path; zero fields get their usual value */
};

static inline void end_open(struct end *e, int host, int device,
                            const struct end_opts *opts)
{
    struct ibv_device **list;

    fake_verbs_host(host);
    list = ibv_get_device_list(NULL);
    assert_non_null(list[device]);
    e->context = ibv_open_device(list[device]);
    ibv_free_device_list(list);
    assert_non_null(e->context);
    e->pd = ibv_alloc_pd(e->context);
    e->channel = ibv_create_comp_channel(e->context);
    e->cq = ibv_create_cq(e->context, END_SENDS + END_RECEIVES, NULL, e->channel, 0);
    assert_non_null(e->cq);
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = END_RECEIVES, .max_sge = 1}};
    if (!opts->no_srq)
        e->srq = ibv_create_srq(e->pd, &srq);
    struct ibv_qp_init_attr init = {.send_cq = e->cq,
                                    .recv_cq = e->cq,
                                    .srq = e->srq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = END_SENDS,
                                            .max_recv_wr = END_RECEIVES,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1}};
    e->qp = ibv_create_qp(e->pd, &init);
    assert_non_null(e->qp);
    e->mem = calloc(1, END_BYTES);
    e->mr = (ibv_reg_mr)(e->pd, e->mem, END_BYTES,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    assert_non_null(e->mr);
}

static inline void end_close(struct end *e)
{
    assert_int_equal(ibv_destroy_qp(e->qp), 0);
    if (e->srq)
        assert_int_equal(ibv_destroy_srq(e->srq), 0);
    assert_int_equal(ibv_dereg_mr(e->mr), 0);
    assert_int_equal(ibv_destroy_cq(e->cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(e->channel), 0);
    assert_int_equal(ibv_dealloc_pd(e->pd), 0);
    assert_int_equal(ibv_close_device(e->context), 0);
    free(e->mem);
    *e = (struct end){0};
}

static inline void end_connect(struct end *e, uint32_t remote,
                               const struct end_opts *opts)
{
    struct ibv_qp_attr a = opts->attr;

    a.port_num = opts->port ? opts->port : 1;
    a.pkey_index = opts->pkey_index;
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    a.path_mtu = a.path_mtu ? a.path_mtu : IBV_MTU_4096;
    a.dest_qp_num = remote;
    a.min_rnr_timer = a.min_rnr_timer ? a.min_rnr_timer : 1;
    a.timeout = a.timeout ? a.timeout : 10; /* 4.2 ms */
    a.retry_cnt = a.retry_cnt ? a.retry_cnt : 3;
    a.rnr_retry = a.rnr_retry ? a.rnr_retry : 7;
    a.qp_state = IBV_QPS_INIT;
    assert_int_equal(ibv_modify_qp(e->qp, &a,
                                   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                       IBV_QP_ACCESS_FLAGS),
                     0);
    a.qp_state = IBV_QPS_RTR;
    assert_int_equal(ibv_modify_qp(e->qp, &a,
                                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                                       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                       IBV_QP_MAX_DEST_RD_ATOMIC |
                                       IBV_QP_MIN_RNR_TIMER),
                     0);
    a.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(e->qp, &a,
                                   IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
                                       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                       IBV_QP_MAX_QP_RD_ATOMIC),
                     0);
}

/* Open an end on each of hosts 0 and 1, and connect them. */
static inline void ends_open(struct end e[2], const struct end_opts opts[2])
{
    for (int i = 0; i < 2; i++)
        end_open(&e[i], i, 0, &opts[i]);
    for (int i = 0; i < 2; i++)
        end_connect(&e[i], e[!i].qp->qp_num, &opts[i]);
}

static inline void ends_close(struct end e[2])
{
    for (int i = 0; i < 2; i++)
        end_close(&e[i]);
}

static inline void end_receive(struct end *e, uint64_t wr_id)
{
    struct ibv_sge sge = {(uintptr_t)e->mem, END_BYTES, e->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

    assert_int_equal(e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad)
                            : ibv_post_recv(e->qp, &wr, &bad),
                     0);
}

/* Post a signalled request of `len` bytes from the start of memory to its start. */
static inline int end_post(struct end *from, const struct end *to,
                           enum ibv_wr_opcode opcode, uint32_t len, uint64_t wr_id)
{
    struct ibv_sge sge = {(uintptr_t)from->mem, len, from->mr->lkey};
    struct ibv_send_wr *bad, wr = {
                                 .wr_id = wr_id,
                                 .sg_list = &sge,
                                 .num_sge = len != 0,
                                 .opcode = opcode,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = {(uintptr_t)to->mem, to->mr->rkey},
                             };

    return ibv_post_send(from->qp, &wr, &bad);
}

/* Return the next completion of an end, which is sure to come. */
static inline struct ibv_wc end_await(struct end *e)
{
    const uint64_t deadline = trib_deadline_ms(tribtest_patience_ms());
    struct ibv_wc wc = {0};

    while (ibv_poll_cq(e->cq, 1, &wc) == 0) {
        assert_false(trib_deadline_passed(deadline));
        usleep(20);
    }
    return wc;
}

#endif
