/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events of the fake's contexts. As on a device, an object is destroyed
 * only when its events that were read are acknowledged; its other events are dropped.
 */
#include <errno.h>
#include <string.h>

#include "tests/harness/fake_hub.h"

static const void *unacked[FAKE_EVENTS_MAX]; /* objects of events that were read */

void fake_events_reset(void)
{
    memset(unacked, 0, sizeof(unacked));
}

/* Return the object that an event is about, or NULL. */
static const void *object_of(const struct ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        return event->element.qp;
    case IBV_EVENT_CQ_ERR:
        return event->element.cq;
    case IBV_EVENT_SRQ_ERR:
        return event->element.srq;
    default:
        return NULL;
    }
}

void fake_raise(struct ibv_context *context, struct ibv_async_event event)
{
    struct fake_events *e = fake_events_of(context);

    if (e->n == FAKE_EVENTS_MAX) {
        fake_mistake("the asynchronous events are not read");
        return;
    }
    e->of[e->n++] = event;
    fake_ring(context->async_fd);
}

static void drop(struct fake_events *e, int at)
{
    memmove(e->of + at, e->of + at + 1, (size_t)(--e->n - at) * sizeof(*e->of));
}

/* Replace the first entry of `unacked` that is `old`. */
static bool replace(const void *old, const void *new)
{
    int i = 0;

    while (i < FAKE_EVENTS_MAX && unacked[i] != old)
        i++;
    if (i < FAKE_EVENTS_MAX)
        unacked[i] = new;
    return i < FAKE_EVENTS_MAX;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *out)
{
    struct fake_events *e = fake_events_of(context);
    int result = -1;

    fake_lock();
    errno = EAGAIN;
    if (e->n) {
        *out = e->of[0];
        drop(e, 0);
        fake_unring(context->async_fd);
        if (object_of(out) && !replace(NULL, object_of(out)))
            fake_mistake("the asynchronous events are not acknowledged");
        result = 0;
    }
    fake_unlock();
    return result;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    fake_lock();
    if (object_of(event) && !replace(object_of(event), NULL))
        fake_mistake("an asynchronous event is acknowledged twice");
    fake_changed();
    fake_unlock();
}

static bool is_unacked(const void *object)
{
    bool is = false;

    for (int i = 0; i < FAKE_EVENTS_MAX; i++)
        is |= unacked[i] == object;
    return is;
}

void fake_events_forget(struct ibv_context *context, const void *object)
{
    struct fake_events *e = fake_events_of(context);

    for (int i = 0; i < e->n;) {
        if (object_of(&e->of[i]) != object) {
            i++;
            continue;
        }
        drop(e, i);
        fake_unring(context->async_fd);
    }
    while (is_unacked(object)) {
        if (!fake_wait()) {
            fake_mistake("an object is destroyed before its event is acknowledged");
            break;
        }
    }
}

void fake_verbs_async_of(const struct ibv_cq *cq, enum ibv_event_type type)
{
    struct ibv_async_event event = {.event_type = type};

    fake_lock();
    struct ibv_qp *qp = fake_queue_pair_of(cq);
    if (type == IBV_EVENT_CQ_ERR)
        event.element.cq = qp->send_cq;
    else if (type == IBV_EVENT_SRQ_ERR)
        event.element.srq = qp->srq;
    else
        event.element.qp = qp;
    fake_raise(cq->context, event);
    fake_unlock();
}
