/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The completion queues of the fake, and their completion channels.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/harness/fake_hub.h"

struct cq {
    struct ibv_cq base;
    struct fake_entry *ring;
    uint32_t head, tail;
    bool armed;
    bool is_busy; /* see fake_clock.c */
    int told, acked;
};

struct channel {
    struct ibv_comp_channel base;
    struct cq *cq;
};

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct channel *channel = calloc(1, sizeof(*channel));

    channel->base.context = context;
    fake_lock();
    channel->base.fd = fake_bell();
    fake_count(1);
    fake_unlock();
    return &channel->base;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    fake_lock();
    close(channel->fd);
    fake_count(-1);
    fake_unlock();
    free(channel);
    return 0;
}

static _Atomic int last_vector; /* ranks may be threads */

int fake_verbs_vector(void)
{
    return last_vector;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int vector)
{
    if (vector < 0 || vector >= context->num_comp_vectors)
        fake_mistake("there is no completion vector %d", vector);
    last_vector = vector;
    if (fake_opts.cq_errno || cqe > fake_opts.max_cqe) {
        errno = fake_opts.cq_errno ? fake_opts.cq_errno : EINVAL;
        return NULL;
    }
    struct cq *cq = calloc(1, sizeof(*cq));
    cq->base = (struct ibv_cq){
        .context = context, .channel = channel, .cq_context = cq_context, .cqe = cqe};
    cq->ring = calloc((size_t)cqe, sizeof(*cq->ring));
    fake_lock();
    ((struct channel *)channel)->cq = cq;
    fake_count(1);
    fake_unlock();
    return &cq->base;
}

int ibv_destroy_cq(struct ibv_cq *base)
{
    struct cq *cq = (struct cq *)base;

    fake_lock();
    fake_events_forget(base->context, base);
    if (cq->told != cq->acked)
        fake_mistake("%d completion events are not acknowledged", cq->told - cq->acked);
    fake_clock_busy(&cq->is_busy, false);
    fake_count(-1);
    fake_unlock();
    free(cq->ring);
    free(cq);
    return 0;
}

void fake_complete(struct ibv_cq *base, const struct fake_entry *entry)
{
    struct cq *cq = (struct cq *)base;

    if (cq->tail - cq->head == (uint32_t)base->cqe) {
        fake_mistake("a completion queue of %d entries overflows", base->cqe);
        return;
    }
    cq->ring[cq->tail++ % (uint32_t)base->cqe] = *entry;
    fake_clock_busy(&cq->is_busy, true);
    if (cq->armed) {
        cq->armed = false;
        fake_ring(base->channel->fd);
    }
}

void fake_cq_posted(struct ibv_cq *base)
{
    fake_clock_busy(&((struct cq *)base)->is_busy, true);
}

static int poll_cq(struct ibv_cq *base, int max, struct ibv_wc *wc)
{
    struct cq *cq = (struct cq *)base;
    int n = 0;

    fake_lock();
    fake_queues_poll();
    if (cq->head == cq->tail) {
        fake_clock_busy(&cq->is_busy, false);
        fake_clock_try();
    }
    for (; n < max && cq->head != cq->tail; n++) {
        struct fake_entry *entry = &cq->ring[cq->head++ % (uint32_t)base->cqe];
        wc[n] = entry->wc;
        if (entry->outstanding)
            *entry->outstanding -= entry->covers;
    }
    fake_unlock();
    return n;
}

static int req_notify_cq(struct ibv_cq *base, int solicited_only)
{
    (void)solicited_only;
    fake_lock();
    ((struct cq *)base)->armed = true;
    fake_unlock();
    return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *base, struct ibv_cq **cq_out,
                     void **context_out)
{
    struct cq *cq = ((struct channel *)base)->cq;
    uint64_t one;

    fake_lock();
    bool rang = read(base->fd, &one, sizeof(one)) == sizeof(one);
    if (rang) {
        cq->told++;
        *cq_out = &cq->base;
        *context_out = cq->base.cq_context;
    }
    fake_unlock();
    return rang ? 0 : -1;
}

void ibv_ack_cq_events(struct ibv_cq *base, unsigned n)
{
    fake_lock();
    ((struct cq *)base)->acked += (int)n;
    fake_unlock();
}

void fake_cq_forget(struct ibv_cq *base, const int *outstanding)
{
    struct cq *cq = (struct cq *)base;

    for (uint32_t i = cq->head; i != cq->tail; i++) {
        struct fake_entry *entry = &cq->ring[i % (uint32_t)cq->base.cqe];
        if (entry->outstanding == outstanding)
            entry->outstanding = NULL;
    }
}

void fake_cq_ops(struct ibv_context_ops *ops)
{
    ops->poll_cq = poll_cq;
    ops->req_notify_cq = req_notify_cq;
}
