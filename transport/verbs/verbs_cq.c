/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: polling the completion queue, and sleeping until it is not empty.
 */
#include <assert.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/verbs_wc.h"

enum {
    POLLS_PER_CLOCK = 32,
    TICK_NS = 5000000,
    ACK_EVERY = 64, /* completion events per acknowledgement, which takes a lock */
};

/* Fetch completions. Those deferred by trib_verbs_drain come first. */
static int fetch_wcs(struct verbs *v, struct ibv_wc *wc, int max)
{
    int n = 0;

    assert(v->deferred_at + v->n_deferred <= v->deferred_max);
    for (; n < max && v->n_deferred; n++, v->n_deferred--)
        wc[n] = v->deferred_cqes[v->deferred_at++];
    if (n)
        return n;
    n = ibv_poll_cq(v->cq, max, wc);
    return n > 0 ? n : 0;
}

static void check_peers(struct verbs *v)
{
    if (atomic_load_explicit(&v->async_events, memory_order_relaxed))
        trib_verbs_handle_async_events(v);
    if (++v->polls % POLLS_PER_CLOCK != 0 && v->tick_at != 0 &&
        !atomic_load_explicit(&v->slept, memory_order_relaxed))
        return;
    uint64_t now = trib_now_ns();
    atomic_store_explicit(&v->slept, false, memory_order_relaxed);
    if (now >= v->tick_at) {
        v->tick_at = now + TICK_NS;
        trib_verbs_tick(v);
    }
}

/* Report the complete writes of one peer. */
static int report_done(const struct verbs *v, int peer, struct trib_event *events,
                       int max)
{
    struct verbs_peer *p = &v->peers[peer];
    int n = 0;

    for (; n < max && p->asked_head != p->asked_tail; p->asked_head++) {
        const struct verbs_asked *a = &p->asked[p->asked_head & (2 * v->depth - 1)];
        if ((int32_t)(p->done - a->position) <= 0)
            break;
        events[n++] = (struct trib_event){
            .kind = TRIB_EVENT_WRITE_DONE, .peer = peer, .token = a->token};
    }
    return n;
}

static int report_writes(struct verbs *v, struct trib_event *events, int max)
{
    int n = 0, kept = 0;

    for (int i = 0; i < v->n_asking; i++) {
        struct verbs_peer *p = &v->peers[v->asking[i]];
        n += report_done(v, v->asking[i], events + n, max - n);
        p->is_asking = p->asked_head != p->asked_tail;
        if (p->is_asking)
            v->asking[kept++] = v->asking[i];
    }
    v->n_asking = kept;
    v->completed = n == max;
    return n;
}

int trib_verbs_poll(struct trib_transport *t, struct trib_event *events, int max)
{
    struct verbs *v = verbs_of(t);
    struct ibv_wc wc[VERBS_BATCH];
    bool empty = false;
    int n = 0;

    trib_verbs_flush(v);
    check_peers(v);
    if (v->completed)
        n = report_writes(v, events, max);
    while (n < max && !empty) {
        int wanted = max - n < VERBS_BATCH ? max - n : VERBS_BATCH;
        int got = fetch_wcs(v, wc, wanted);
        for (int i = 0; i < got; i++)
            n += verbs_handle_wc(v, &wc[i], &events[n]);
        empty = got < wanted && v->n_deferred == 0;
    }
    verbs_refill(v);
    if (v->completed && n < max)
        n += report_writes(v, events + n, max - n);
    if (v->uncovered)
        trib_verbs_cover(v);
    v->may_sleep = false;
    if (v->n_losing && empty && n < max)
        n += trib_verbs_report_losses(v, events + n, max - n);
    return n;
}

/* Once armed, the CQ stays armed until a completion event. */
void trib_verbs_arm(struct trib_transport *t)
{
    struct verbs *v = verbs_of(t);

    v->may_sleep = true;
    if (!atomic_exchange_explicit(&v->armed, true, memory_order_acq_rel))
        (void)ibv_req_notify_cq(v->cq, 0);
}

static void ack_events(struct verbs *v)
{
    struct ibv_cq *cq;
    void *context;

    while (v->api.ibv_get_cq_event(v->channel, &cq, &context) == 0) {
        atomic_store_explicit(&v->armed, false, memory_order_release);
        if (atomic_fetch_add_explicit(&v->unacked, 1, memory_order_relaxed) + 1 >=
            ACK_EVERY)
            v->api.ibv_ack_cq_events(
                cq, atomic_exchange_explicit(&v->unacked, 0, memory_order_relaxed));
    }
}

int trib_verbs_event_fd(struct trib_transport *t)
{
    return verbs_of(t)->epoll;
}

void trib_verbs_wait(struct trib_transport *t, int timeout_us)
{
    struct verbs *v = verbs_of(t);
    struct timespec ts = {timeout_us / 1000000, timeout_us % 1000000 * 1000L};
    struct pollfd fd = {.fd = v->epoll, .events = POLLIN};
    uint64_t rings;

    atomic_store_explicit(&v->slept, true, memory_order_relaxed);
    if (timeout_us > 0 && ppoll(&fd, 1, &ts, NULL) <= 0)
        return;
    (void)!read(v->wakeup_fd, &rings, sizeof(rings)); /* empty, or read by another
                                                       * thread */
    ack_events(v);
}
