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

/* Record an error of the device for all peers. */
static void set_fault_all(struct verbs *v, const char *text)
{
    assert(verbs_links_held(v));
    for (int i = 0; i < v->size; i++)
        snprintf(v->peers[i].fault, sizeof(v->peers[i].fault), "%s", text);
    trib_verbs_wake_owner(v);
}

void trib_verbs_end_device(struct verbs *v, const char *end)
{
    char why[TRIB_WHY_MAX];

    assert(verbs_links_held(v));
    if (!verbs_device_end(v))
        atomic_store_explicit(&v->device_end, end, memory_order_release);
    trib_verbs_device_end_text(v, why);
    set_fault_all(v, why);
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

/* Return the meaning of a port event, or NULL for other events. */
static const char *port_text(enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_PORT_ACTIVE:
        return "is active";
    case IBV_EVENT_PORT_ERR:
        return "is down";
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

/* Return true if connections may use a port. Devices report the events of all ports. */
static bool is_used(const struct verbs *v, int port)
{
    return port == v->port_num || (!v->one_port && !*v->no_rdmacm);
}

static void log_port_event(const struct verbs *v, const struct ibv_async_event *event,
                           const char *text)
{
    const int port = event->element.port_num;

    if (!is_used(v, port))
        return;
    if (event->event_type != IBV_EVENT_PORT_ERR)
        trib_log(v->log, TRIB_LOG_INFO, "verbs", "port %d of %s %s", port, v->device,
                 text);
    else
        trib_log(
            v->log, TRIB_LOG_WARN, "verbs",
            "port %d of %s %s: peers are lost unless it comes back soon; check its "
            "cable, its switch and ibv_devinfo",
            port, v->device, text);
}

/* Return true if an event reports an error of this transport. */
static bool is_fault(const struct verbs *v, const struct ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_FATAL:
        return owner_of(v, event->element.qp);
    case IBV_EVENT_CQ_ERR:
        return event->element.cq == v->cq;
    case IBV_EVENT_SRQ_ERR:
        return event->element.srq == v->srq;
    case IBV_EVENT_DEVICE_FATAL:
        return true;
    default: /* path migration, limits, work queues: unused here */
        return false;
    }
}

static void record_fault(struct verbs *v, const struct ibv_async_event *event)
{
    assert(verbs_links_held(v));
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
    case IBV_EVENT_DEVICE_FATAL:
        trib_verbs_end_device(v, "has failed");
        break;
    default:
        trib_verbs_end_device(v, "reports a failed queue");
        break;
    }
}

/*
 * Called by the adapter's thread, for which all transports wait. So it takes `links`,
 * which a thread may hold while the user's log function blocks, only for an error of
 * this transport, and does not hold it while it logs.
 */
static void handle(void *arg, const struct ibv_async_event *event)
{
    const char *text = event ? port_text(event->event_type) : NULL;
    struct verbs *v = arg;

    if (text)
        log_port_event(v, event, text);
    if (event && !is_fault(v, event))
        return;
    pthread_mutex_lock(&v->links);
    if (event)
        record_fault(v, event);
    else
        trib_verbs_end_device(v, VERBS_DISAPPEARED);
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
