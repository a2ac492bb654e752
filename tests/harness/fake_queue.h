/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue pair of the fake: fake_queues.c makes it and takes requests, fake_requests.c
 * executes them, fake_links.c says when and whether they arrive.
 */
#ifndef TESTS_HARNESS_FAKE_QUEUE_H
#define TESTS_HARNESS_FAKE_QUEUE_H

#include "tests/harness/fake_hub.h"

struct fake_send {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    struct fake_wait wait;
    uint8_t bytes[FAKE_INLINE_MAX]; /* data of an inline request */
};

struct fake_queue {
    struct ibv_qp base;
    enum ibv_qp_state state;
    uint32_t remote; /* queue pair number */
    int port; /* of the device; 0: not ready yet */
    uint32_t max_send, max_inline;
    unsigned access;
    uint32_t mask; /* of sends */
    struct fake_send *sends; /* [mask + 1], not executed yet */
    uint32_t head, tail;
    uint32_t pushed; /* requests before this one are with the other process */
    uint64_t last_due; /* ns */
    struct fake_list inbox; /* requests of another process to this queue pair */
    int outstanding; /* posted, and not known to be completed */
    int unreported; /* executed since the last completion */
    struct fake_receives own; /* where there is no shared receive queue */
    struct fake_queue *next, **at; /* all */
    struct fake_queue *next_same; /* in its hash bucket */
    struct fake_queue *next_busy, **busy_at; /* with requests; NULL: not in the list */
};

/* Return the receive queue of a queue pair. */
static inline struct fake_receives *fake_receives_of(struct fake_queue *qp)
{
    return qp->base.srq ? &((struct fake_srq *)qp->base.srq)->receives : &qp->own;
}

/* fake_queues.c */
struct fake_queue *fake_find_queue(uint32_t number);

/* fake_requests.c: execute what can be, of one queue pair and of all. */
void fake_run(struct fake_queue *qp);
void fake_run_all(void);
/* Put a queue pair into the list of those that have requests; take it out. */
void fake_mark_busy(struct fake_queue *qp);
void fake_mark_idle(struct fake_queue *qp);
/* Complete a request, or all requests of a broken queue pair. */
void fake_report(struct fake_queue *qp, const struct ibv_send_wr *wr,
                 enum ibv_wc_status status);
void fake_break(struct fake_queue *qp);
void fake_return_requests(struct fake_queue *qp);
void fake_requests_reset(void);

#endif
