/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager of the fake. Ids reach each other by messages, which name
 * process and number.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness/fake_hub.h"

#define PRIVATE_MAX 196

enum state { IDLE, LISTENING, CALLING, CALLED, ANSWERED, CONNECTED, ENDED };

struct id {
    struct rdma_cm_id base;
    uint32_t number;
    enum state state;
    uint16_t port;
    int to_host, to_device; /* of the resolved address */
    uint8_t to_port;
    int other_process; /* -1: none */
    uint32_t other; /* its number; 0: not known yet */
    uint32_t qp_num, other_qp_num;
    int reported, acked; /* events */
    struct id *next;
};

struct event {
    struct rdma_cm_event base;
    struct id *counts; /* its destruction waits for the acknowledgement */
    uint8_t bytes[PRIVATE_MAX];
    struct event *next;
};

struct channel {
    struct rdma_event_channel base;
    struct event *queue;
};

static struct id *ids;

void fake_rdmacm_reset(void)
{
    ids = NULL;
}

static struct id *id_of(struct rdma_cm_id *id)
{
    return (struct id *)id;
}

static void append(struct channel *channel, struct event *event)
{
    struct event **end = &channel->queue;

    while (*end)
        end = &(*end)->next;
    *end = event;
    event->next = NULL;
    fake_ring(channel->base.fd);
}

/* Report an event on the channel of `id`, or of its listener, which owns a request. */
static struct event *tell(struct id *id, enum rdma_cm_event_type type, int status)
{
    struct event *event = calloc(1, sizeof(*event));

    event->base.id = &id->base;
    event->base.event = type;
    event->base.status = status;
    event->counts = id;
    append((struct channel *)id->base.channel, event);
    return event;
}

static void attach(struct event *event, const void *data, size_t len, size_t room)
{
    if (len > room)
        fake_mistake("private data of %zu bytes, room for %zu", len, room);
    else
        memcpy(event->bytes, data, len);
    event->base.param.conn.private_data = event->bytes;
    event->base.param.conn.private_data_len = (uint8_t)room;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
    if (fake_opts.no_connection_manager) {
        errno = ENODEV;
        return NULL;
    }
    struct channel *channel = calloc(1, sizeof(*channel));
    fake_lock();
    channel->base.fd = fake_bell();
    fake_count(1);
    fake_unlock();
    return &channel->base;
}

void rdma_destroy_event_channel(struct rdma_event_channel *base)
{
    struct channel *channel = (struct channel *)base;

    fake_lock();
    if (channel->queue)
        fake_mistake("an event channel is destroyed with events in it");
    for (struct id *id = ids; id; id = id->next) {
        if (id->base.channel == base)
            fake_mistake("an event channel is destroyed before its ids");
    }
    close(base->fd);
    fake_count(-1);
    fake_unlock();
    free(channel);
}

static struct id *new_id(struct rdma_event_channel *channel, void *context)
{
    struct id *id = calloc(1, sizeof(*id));

    id->base.channel = channel;
    id->base.context = context;
    id->base.ps = RDMA_PS_TCP;
    id->number = fake_hub->next_id++;
    id->other_process = -1;
    id->next = ids;
    ids = id;
    fake_count(1);
    return id;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out,
                   void *context, enum rdma_port_space ps)
{
    (void)ps;
    fake_lock();
    *out = &new_id(channel, context)->base;
    fake_unlock();
    return 0;
}

/* Send a message to the other side of an id. */
static void send_to(struct id *id, struct fake_cm_message cm, const void *data,
                    size_t len)
{
    struct fake_message m = {.kind = FAKE_CM,
                             .from = fake_self(),
                             .to_id = id->other,
                             .from_id = id->number,
                             .cm = cm};

    m.cm.len = (uint8_t)len;
    if (len)
        memcpy(m.bytes, data, len);
    if (!fake_send(id->other_process, &m))
        fake_mistake("no room for a message of the connection manager");
}

static void part(struct id *id)
{
    const bool has_other = id->other_process >= 0;

    if (has_other)
        send_to(id, (struct fake_cm_message){.type = RDMA_CM_EVENT_DISCONNECTED}, NULL,
                0);
    id->other_process = -1;
}

static void take_out(struct id *id)
{
    struct id **at = &ids;

    while (*at != id)
        at = &(*at)->next;
    *at = id->next;
    fake_count(-1);
    free(id);
}

/* Drop the unread events of an id; its destruction waits for the others. */
static void drop_events(struct id *id)
{
    struct channel *channel = (struct channel *)id->base.channel;

    for (struct event **at = &channel->queue; *at;) {
        struct event *event = *at;
        if (event->base.id != &id->base && event->counts != id) {
            at = &event->next;
            continue;
        }
        *at = event->next;
        fake_unring(channel->base.fd);
        if (event->base.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
            part(id_of(event->base.id));
            take_out(id_of(event->base.id));
        }
        free(event);
    }
}

int rdma_destroy_id(struct rdma_cm_id *base)
{
    struct id *id = id_of(base);

    fake_lock();
    part(id);
    fake_remove_listener(id->number);
    drop_events(id);
    while (id->acked < id->reported) {
        if (!fake_wait()) {
            fake_mistake("an id is destroyed whose events nobody acknowledges");
            break;
        }
    }
    take_out(id);
    fake_unlock();
    return 0;
}

static int refuse(int error)
{
    errno = error;
    return -1;
}

static uint16_t port_of(const struct sockaddr *address)
{
    return address->sa_family == AF_INET
               ? ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port)
               : ntohs(((const struct sockaddr_in6 *)(const void *)address)->sin6_port);
}

int rdma_bind_addr(struct rdma_cm_id *base, struct sockaddr *address)
{
    struct id *id = id_of(base);
    const struct fake_place p = fake_place_of(address);
    uint16_t port = port_of(address);
    int error = 0;

    fake_lock();
    for (struct id *i = ids; i && port; i = i->next) {
        if (i->port == port && i->state != CALLED && i->state != CONNECTED)
            error = EADDRINUSE;
    }
    if (port && fake_find_listener(fake_host(), port))
        error = EADDRINUSE;
    if (p.host != fake_host())
        error = EADDRNOTAVAIL;
    if (!error) {
        id->port = port ? port : fake_hub->next_port++;
        base->verbs = p.device < 0 ? NULL : fake_shared_context(p.device);
        base->port_num = p.port;
    }
    fake_unlock();
    return error ? refuse(error) : 0;
}

int rdma_listen(struct rdma_cm_id *base, int backlog)
{
    (void)backlog;
    fake_lock();
    id_of(base)->state = LISTENING;
    fake_add_listener(id_of(base)->number, id_of(base)->port);
    fake_device_start();
    fake_unlock();
    return 0;
}

__be16 rdma_get_src_port(struct rdma_cm_id *base)
{
    return htons(id_of(base)->port);
}

int rdma_resolve_addr(struct rdma_cm_id *base, struct sockaddr *from,
                      struct sockaddr *to, int timeout_ms)
{
    struct id *id = id_of(base);
    const struct fake_place p = fake_place_of(to);

    (void)from;
    (void)timeout_ms;
    fake_lock();
    if (fake_opts.address_errors || p.device < 0 || p.host < 0 ||
        p.host >= fake_opts.hosts) {
        tell(id, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
    } else {
        base->verbs = fake_shared_context(fake_opts.other_device ? fake_opts.devices - 1
                                                                 : p.device);
        base->port_num = fake_opts.other_port ? (uint8_t)fake_opts.ports : p.port;
        id->port = port_of(to);
        id->to_host = p.host;
        id->to_device = p.device;
        id->to_port = p.port;
        tell(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    }
    fake_unlock();
    return 0;
}

int rdma_resolve_route(struct rdma_cm_id *base, int timeout_ms)
{
    (void)timeout_ms;
    fake_lock();
    tell(id_of(base), RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    fake_unlock();
    return 0;
}

int rdma_init_qp_attr(struct rdma_cm_id *base, struct ibv_qp_attr *attr, int *mask)
{
    struct id *id = id_of(base);
    enum ibv_qp_state state = attr->qp_state;

    memset(attr, 0, sizeof(*attr));
    attr->qp_state = state;
    *mask = IBV_QP_STATE;
    fake_lock();
    if (state == IBV_QPS_INIT) {
        attr->port_num = base->port_num;
        *mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    } else if (state == IBV_QPS_RTR) {
        attr->dest_qp_num = id->other_qp_num;
        attr->path_mtu = IBV_MTU_4096;
        if (!id->other_qp_num)
            fake_mistake("ready to receive before the other queue pair is known");
    }
    fake_unlock();
    return 0;
}

int rdma_connect(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
    struct id *id = id_of(base);

    fake_lock();
    const struct fake_listener *l = fake_find_listener(id->to_host, id->port);
    id->state = CALLING;
    id->qp_num = param->qp_num;
    if (fake_opts.reject || !l) {
        tell(id, RDMA_CM_EVENT_REJECTED, l ? fake_opts.reject : 8);
    } else if (!fake_opts.deaf) {
        id->other_process = l->process;
        id->other = l->id;
        send_to(id,
                (struct fake_cm_message){.type = RDMA_CM_EVENT_CONNECT_REQUEST,
                                         .qp_num = param->qp_num,
                                         .device = fake_opts.other_device
                                                       ? fake_opts.devices - 1
                                                       : id->to_device,
                                         .port = base->port_num},
                param->private_data, param->private_data_len);
    }
    fake_unlock();
    return 0;
}

int rdma_accept(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
    struct id *id = id_of(base);
    int error = 0;

    fake_lock();
    if (id->state != CALLED || id->other_process < 0) {
        error = EINVAL;
    } else {
        id->state = ANSWERED;
        id->qp_num = param->qp_num;
        send_to(id,
                (struct fake_cm_message){.type = RDMA_CM_EVENT_CONNECT_RESPONSE,
                                         .qp_num = param->qp_num},
                param->private_data, param->private_data_len);
    }
    fake_unlock();
    return error ? refuse(error) : 0;
}

int rdma_reject(struct rdma_cm_id *base, const void *data, uint8_t len)
{
    struct id *id = id_of(base);

    fake_lock();
    if (id->other_process >= 0)
        send_to(id,
                (struct fake_cm_message){.type = RDMA_CM_EVENT_REJECTED, .status = 28},
                data, len);
    id->other_process = -1;
    id->state = ENDED;
    fake_unlock();
    return 0;
}

int rdma_establish(struct rdma_cm_id *base)
{
    struct id *id = id_of(base);
    int error = 0;

    fake_lock();
    if (id->state != ANSWERED || id->other_process < 0 || fake_opts.half_way) {
        error = EINVAL;
    } else {
        id->state = CONNECTED;
        send_to(id, (struct fake_cm_message){.type = RDMA_CM_EVENT_ESTABLISHED}, NULL,
                0);
    }
    fake_unlock();
    return error ? refuse(error) : 0;
}

int rdma_disconnect(struct rdma_cm_id *base)
{
    struct id *id = id_of(base);

    fake_lock();
    bool connected = id->state == CONNECTED;
    if (connected) {
        part(id);
        id->state = ENDED;
        tell(id, RDMA_CM_EVENT_DISCONNECTED, 0);
    }
    fake_unlock();
    return connected ? 0 : refuse(EINVAL);
}

int rdma_migrate_id(struct rdma_cm_id *base, struct rdma_event_channel *to)
{
    struct channel *from = (struct channel *)base->channel;

    fake_lock();
    base->channel = to;
    for (struct event **at = &from->queue; *at;) {
        struct event *event = *at;
        if (event->base.id != base) {
            at = &event->next;
            continue;
        }
        *at = event->next;
        fake_unring(from->base.fd);
        append((struct channel *)to, event);
    }
    fake_unlock();
    return 0;
}

int rdma_get_cm_event(struct rdma_event_channel *base, struct rdma_cm_event **out)
{
    struct channel *channel = (struct channel *)base;

    fake_lock();
    struct event *event = channel->queue;
    if (event) {
        channel->queue = event->next;
        fake_unring(base->fd);
        event->counts->reported++;
        *out = &event->base;
    }
    fake_unlock();
    return event ? 0 : refuse(EAGAIN);
}

int rdma_ack_cm_event(struct rdma_cm_event *base)
{
    struct event *event = (struct event *)base;

    fake_lock();
    event->counts->acked++;
    fake_changed();
    fake_unlock();
    free(event);
    return 0;
}

void fake_verbs_cut(void)
{
    fake_lock();
    for (struct id *id = ids; id; id = id->next) {
        if (id->state != CONNECTED)
            continue;
        id->state = ENDED;
        id->other_process = -1;
        tell(id, RDMA_CM_EVENT_DISCONNECTED, 0);
    }
    fake_unlock();
}

void fake_verbs_unplug(void)
{
    fake_lock();
    for (struct id *id = ids; id; id = id->next) {
        if (id->state == CONNECTED)
            tell(id, RDMA_CM_EVENT_UNREACHABLE, ETIMEDOUT);
    }
    fake_unlock();
}

void fake_verbs_remove(void)
{
    fake_lock();
    for (struct id *id = ids; id; id = id->next) {
        if (id->state == LISTENING)
            tell(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
    }
    fake_unlock();
}

/* Messages of other ids ------------------------------------------------------------ */

/* Return the id that a message is for. A caller may not know the number of the id that
 * its request made. */
static struct id *receiver(const struct fake_message *m)
{
    for (struct id *id = ids; id; id = id->next)
        if (id->other_process == m->from && id->other == m->from_id)
            return id;
    for (struct id *id = ids; id; id = id->next)
        if (id->number == m->to_id)
            return id;
    return NULL;
}

static void request(struct id *listener, const struct fake_message *m)
{
    struct id *child = new_id(listener->base.channel, listener->base.context);

    child->base.verbs = fake_shared_context(m->cm.device);
    child->base.port_num = m->cm.port;
    child->state = CALLED;
    child->other_process = m->from;
    child->other = m->from_id;
    child->other_qp_num = m->cm.qp_num;
    struct event *event = tell(child, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    event->base.listen_id = &listener->base;
    event->counts = listener;
    attach(event, m->bytes, m->cm.len, 56);
}

static void response(struct id *id, const struct fake_message *m)
{
    id->state = ANSWERED;
    id->other = m->from_id;
    id->other_qp_num = m->cm.qp_num;
    attach(tell(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0), m->bytes, m->cm.len, 196);
}

static void end(struct id *id, const struct fake_message *m)
{
    const bool answered = id->state == CONNECTED || id->state == ANSWERED;

    if (m->cm.type == RDMA_CM_EVENT_REJECTED)
        attach(tell(id, RDMA_CM_EVENT_REJECTED, m->cm.status), m->bytes, m->cm.len,
               148);
    else
        tell(id, answered ? RDMA_CM_EVENT_DISCONNECTED : RDMA_CM_EVENT_REJECTED, 4);
    id->state = ENDED;
    id->other_process = -1;
}

void fake_rdmacm_event(const struct fake_message *m)
{
    struct id *id = receiver(m);

    if (!id)
        return;
    switch (m->cm.type) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        if (id->state == LISTENING)
            request(id, m);
        break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        if (id->state == CALLING)
            response(id, m);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        id->state = CONNECTED;
        tell(id, RDMA_CM_EVENT_ESTABLISHED, 0);
        break;
    default:
        if (id->state != LISTENING)
            end(id, m);
        break;
    }
}

void fake_rdmacm_check(void)
{
    for (struct id *id = ids; id; id = id->next) {
        if (id->other_process < 0 || !fake_has_ended(id->other_process))
            continue;
        id->other_process = -1;
        tell(id,
             id->state == CALLING ? RDMA_CM_EVENT_UNREACHABLE
                                  : RDMA_CM_EVENT_DISCONNECTED,
             0);
        id->state = ENDED;
    }
}
