/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: asynchronous events of the device. They are recorded for the owner.
 *
 * All transports of this process share the device's context, so each event reaches all
 * of them (verbs_adapter.h). Events of a queue concern only the transport that has the
 * queue.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "base/log.h"
#include "transport/verbs/verbs.h"

void trib_verbs_set_fault_all(struct verbs *v, const char *text)
{
    assert(verbs_links_held(v));
    for (int i = 0; i < v->size; i++)
        snprintf(v->peers[i].fault, sizeof(v->peers[i].fault), "%s", text);
    trib_verbs_wake_owner(v);
}

/* Return the peer that a queue pair was created for; NULL: it belongs to another
 * transport. */
static struct verbs_peer *owner_of(const struct verbs *v, const struct ibv_qp *qp)
{
    const uintptr_t at = (uintptr_t)qp->qp_context, first = (uintptr_t)v->peers;

    return at - first < (size_t)v->size * sizeof(*v->peers) ? qp->qp_context : NULL;
}

static void set_fault(struct verbs *v, const struct ibv_qp *qp, const char *text)
{
    struct verbs_peer *p = owner_of(v, qp);

    if (!p || (qp != p->in.qp && qp != p->out.qp))
        return;
    snprintf(p->fault, sizeof(p->fault), "%s", text);
    trib_verbs_wake_owner(v);
}

#define FAILED_QUEUE "a queue of this host's RDMA device has failed"

/* Devices report the events of all their ports. */
static bool is_other_port(const struct verbs *v, const struct ibv_async_event *event)
{
    return v->one_port && event->element.port_num != v->port_num;
}

/* Return the meaning of a port event, or NULL if it does not concern this transport. */
static const char *port_text(enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_PORT_ACTIVE:
        return "is active";
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_LID_CHANGE:
        return "has new addresses; existing connections keep the old ones";
    case IBV_EVENT_PKEY_CHANGE:
        return "has new partition keys; connections in a removed partition will fail: "
               "ask the administrator of the subnet manager";
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
        return "has a new or restarted subnet manager";
    default:
        return NULL;
    }
}

static void handle_async_event(struct verbs *v, const struct ibv_async_event *event)
{
    const char *text = port_text(event->event_type);

    assert(verbs_links_held(v));
    if (text) {
        if (!is_other_port(v, event))
            trib_log(v->log, TRIB_LOG_INFO, "verbs", "port %d of %s %s",
                     event->element.port_num, v->device, text);
        return;
    }
    switch (event->event_type) {
    case IBV_EVENT_QP_ACCESS_ERR:
        set_fault(v, event->element.qp, "it wrote outside this rank's regions");
        break;
    case IBV_EVENT_QP_REQ_ERR:
        set_fault(v, event->element.qp, "it sent an invalid request");
        break;
    case IBV_EVENT_QP_FATAL:
        set_fault(v, event->element.qp,
                  "the device reported a fatal error of its queue pair");
        break;
    case IBV_EVENT_CQ_ERR:
        if (event->element.cq == v->cq)
            trib_verbs_set_fault_all(v, FAILED_QUEUE);
        break;
    case IBV_EVENT_SRQ_ERR:
        if (event->element.srq == v->srq)
            trib_verbs_set_fault_all(v, FAILED_QUEUE);
        break;
    case IBV_EVENT_DEVICE_FATAL:
        trib_verbs_set_fault_all(v, "this host's RDMA device has failed");
        break;
    case IBV_EVENT_PORT_ERR:
        if (!is_other_port(v, event))
            trib_log(v->log, TRIB_LOG_WARN, "verbs",
                     "port %d of %s is down: peers are lost unless it comes back soon; "
                     "check its cable, its switch and ibv_devinfo",
                     event->element.port_num, v->device);
        break;
    default: /* path migration, limits, work queues: unused here */
        break;
    }
}

/* Called by the adapter's thread. */
static void handle(void *arg, const struct ibv_async_event *event)
{
    struct verbs *v = arg;

    pthread_mutex_lock(&v->links);
    if (event)
        handle_async_event(v, event);
    else
        trib_verbs_set_fault_all(v, VERBS_DISAPPEARED);
    pthread_mutex_unlock(&v->links);
}

trib_status_t trib_verbs_events_start(struct verbs *v)
{
    v->sink = (struct verbs_event_sink){.handle = handle, .arg = v};
    errno = trib_verbs_adapter_listen(v->adapter, &v->sink);
    return errno ? trib_fail(v->err, TRIB_ERR_SYSTEM,
                             "verbs: cannot start a thread for the events of %s: %m",
                             v->device)
                 : TRIB_OK;
}

void trib_verbs_events_stop(struct verbs *v)
{
    trib_verbs_adapter_ignore(v->adapter, &v->sink);
}
