/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive queues of the fake, shared or of one queue pair.
 */
#include <errno.h>
#include <stdlib.h>

#include "tests/harness/fake_hub.h"

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    if (fake_opts.srq_errno) {
        errno = fake_opts.srq_errno;
        return NULL;
    }
    struct fake_srq *srq = calloc(1, sizeof(*srq));

    srq->base.pd = pd;
    srq->base.context = pd->context;
    srq->max = init->attr.max_wr;
    fake_lock();
    fake_count(1);
    fake_unlock();
    return &srq->base;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
    fake_lock();
    if (fake_queues_use(srq))
        fake_mistake("a receive queue goes before its queue pairs");
    fake_count(-1);
    fake_unlock();
    free(srq);
    return 0;
}

int fake_add_receives(struct fake_srq *srq, struct ibv_recv_wr *wr,
                      struct ibv_recv_wr **bad)
{
    for (; wr; wr = wr->next) {
        *bad = wr;
        if (srq->free == srq->max) {
            fake_mistake("a receive queue of %u overflows", srq->max);
            return ENOMEM;
        }
        srq->wr_id = wr->wr_id;
        srq->free++;
    }
    return 0;
}

int fake_post_srq_recv(struct ibv_srq *base, struct ibv_recv_wr *wr,
                       struct ibv_recv_wr **bad)
{
    fake_lock();
    const int error = fake_add_receives((struct fake_srq *)base, wr, bad);
    (void)fake_queues_run();
    fake_unlock();
    return error;
}

void fake_flush_receives(struct ibv_qp *qp, struct fake_srq *own)
{
    const struct fake_entry flushed = {.wc = {.wr_id = own->wr_id,
                                              .status = IBV_WC_WR_FLUSH_ERR,
                                              .opcode = (enum ibv_wc_opcode)0x55,
                                              .qp_num = qp->qp_num}};

    for (; own->free; own->free--)
        fake_complete(qp->recv_cq, &flushed);
}
