/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive queues of the fake: of a queue pair, or shared.
 */
#include <errno.h>
#include <stdlib.h>

#include "tests/harness/fake_queue.h"

void fake_receives_make(struct fake_receives *receives, uint32_t max)
{
    *receives = (struct fake_receives){.max = max};
    receives->ring = max ? calloc(max, sizeof(*receives->ring)) : NULL;
}

void fake_receives_free(struct fake_receives *receives)
{
    free(receives->ring);
}

int fake_receives_post(struct fake_receives *receives, struct ibv_recv_wr *wr,
                       struct ibv_recv_wr **bad)
{
    for (; wr; wr = wr->next) {
        *bad = wr;
        if (receives->n == receives->max) {
            fake_mistake("a receive queue of %u overflows", receives->max);
            return ENOMEM;
        }
        struct fake_receive *at =
            &receives->ring[(receives->head + receives->n++) % receives->max];
        *at = (struct fake_receive){.wr_id = wr->wr_id};
        if (wr->num_sge)
            at->sge = wr->sg_list[0];
    }
    return 0;
}

bool fake_receives_take(struct fake_receives *receives, struct fake_receive *out)
{
    if (receives->n == 0)
        return false;
    *out = receives->ring[receives->head];
    receives->head = (receives->head + 1) % receives->max;
    receives->n--;
    return true;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    fake_lock();
    const int error = fake_opts.srq_errno        ? fake_opts.srq_errno
                      : fake_no_srq(pd->context) ? EOPNOTSUPP
                      : (int)init->attr.max_wr > fake_opts.max_srq_wr ? EINVAL
                                                                      : 0;
    fake_unlock();
    if (error) {
        errno = error;
        return NULL;
    }
    struct fake_srq *srq = calloc(1, sizeof(*srq));

    srq->base.pd = pd;
    srq->base.context = pd->context;
    fake_receives_make(&srq->receives, init->attr.max_wr);
    fake_lock();
    fake_count(1);
    fake_unlock();
    return &srq->base;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
    fake_lock();
    fake_events_forget(srq->context, srq);
    if (fake_queues_use(srq))
        fake_mistake("a receive queue goes before its queue pairs");
    fake_count(-1);
    fake_unlock();
    fake_receives_free(&((struct fake_srq *)srq)->receives);
    free(srq);
    return 0;
}

int fake_post_srq_recv(struct ibv_srq *base, struct ibv_recv_wr *wr,
                       struct ibv_recv_wr **bad)
{
    fake_lock();
    const int error = fake_receives_post(&((struct fake_srq *)base)->receives, wr, bad);
    fake_run_all();
    fake_unlock();
    return error;
}
