/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager of the fake. Ids of one process connect to each other by
 * port.
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
    enum state state;
    uint16_t port;
    struct id *other;
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
static uint16_t next_port;

void fake_rdmacm_reset(void)
{
    ids = NULL;
    next_port = 40000;
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

static struct rdma_event_channel *create_channel(void)
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

static void destroy_channel(struct rdma_event_channel *base)
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
    id->next = ids;
    ids = id;
    fake_count(1);
    return id;
}

static int create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out,
                     void *context, enum rdma_port_space ps)
{
    (void)ps;
    fake_lock();
    *out = &new_id(channel, context)->base;
    fake_unlock();
    return 0;
}

static void part(struct id *id)
{
    struct id *other = id->other;

    id->other = NULL;
    if (!other)
        return;
    other->other = NULL;
    bool answered = other->state == CONNECTED || other->state == ANSWERED;
    tell(other, answered ? RDMA_CM_EVENT_DISCONNECTED : RDMA_CM_EVENT_REJECTED, 4);
    other->state = ENDED;
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

static int destroy_id(struct rdma_cm_id *base)
{
    struct id *id = id_of(base);

    fake_lock();
    part(id);
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

/* Return the device of address 127.9.N.P; -1: any, or none. */
static int device_of(const struct sockaddr *address)
{
    const struct sockaddr_in *four = (const void *)address;

    if (address->sa_family != AF_INET || !four->sin_addr.s_addr ||
        fake_opts.address_less)
        return -1;
    return (int)(ntohl(four->sin_addr.s_addr) >> 8 & 0xff);
}

static uint8_t device_port_of(const struct sockaddr *address)
{
    const struct sockaddr_in *four = (const void *)address;

    uint32_t port = device_of(address) < 0 ? 1 : ntohl(four->sin_addr.s_addr) & 0xff;

    return port <= (uint32_t)fake_opts.ports ? (uint8_t)port : 1;
}

static int bind_address(struct rdma_cm_id *base, struct sockaddr *address)
{
    struct id *id = id_of(base);
    int device = device_of(address), error = 0;
    uint16_t port = port_of(address);

    fake_lock();
    for (struct id *i = ids; i && port; i = i->next) {
        if (i->port == port && i->state != CALLED && i->state != CONNECTED)
            error = EADDRINUSE;
    }
    if (!error) {
        id->port = port ? port : next_port++;
        base->verbs = device < 0 ? NULL : fake_shared_context(device);
        base->port_num = device_port_of(address);
    }
    fake_unlock();
    return error ? refuse(error) : 0;
}

static int listen_id(struct rdma_cm_id *base, int backlog)
{
    (void)backlog;
    fake_lock();
    id_of(base)->state = LISTENING;
    fake_unlock();
    return 0;
}

static __be16 get_port(struct rdma_cm_id *base)
{
    return htons(id_of(base)->port);
}

static int resolve_address(struct rdma_cm_id *base, struct sockaddr *from,
                           struct sockaddr *to, int timeout_ms)
{
    int device = device_of(to);

    (void)from;
    (void)timeout_ms;
    fake_lock();
    if (fake_opts.address_errors || device < 0) {
        tell(id_of(base), RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
    } else {
        base->verbs = fake_shared_context(fake_opts.other_device ? fake_opts.devices - 1
                                                                 : device);
        base->port_num = fake_opts.other_port ? (uint8_t)fake_opts.ports
                                              : device_port_of(to);
        id_of(base)->port = port_of(to);
        tell(id_of(base), RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    }
    fake_unlock();
    return 0;
}

static int resolve_route(struct rdma_cm_id *base, int timeout_ms)
{
    (void)timeout_ms;
    fake_lock();
    tell(id_of(base), RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    fake_unlock();
    return 0;
}

static int init_attr(struct rdma_cm_id *base, struct ibv_qp_attr *attr, int *mask)
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

static struct id *find_listener(uint16_t port)
{
    for (struct id *i = ids; i; i = i->next) {
        if (i->state == LISTENING && i->port == port)
            return i;
    }
    return NULL;
}

static int connect_id(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
    struct id *id = id_of(base);

    fake_lock();
    struct id *listener = find_listener(id->port);
    id->state = CALLING;
    id->qp_num = param->qp_num;
    if (fake_opts.reject || !listener) {
        tell(id, RDMA_CM_EVENT_REJECTED, listener ? fake_opts.reject : 8);
    } else if (!fake_opts.deaf) {
        struct id *child = new_id(listener->base.channel, listener->base.context);
        child->base.verbs = base->verbs;
        child->base.port_num = base->port_num;
        child->state = CALLED;
        child->other = id;
        child->other_qp_num = param->qp_num;
        id->other = child;
        struct event *event = tell(child, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
        event->base.listen_id = &listener->base;
        event->counts = listener;
        attach(event, param->private_data, param->private_data_len, 56);
    }
    fake_unlock();
    return 0;
}

static int accept_id(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
    struct id *id = id_of(base);
    int error = 0;

    fake_lock();
    if (id->state != CALLED || !id->other) {
        error = EINVAL;
    } else {
        id->state = ANSWERED;
        id->qp_num = param->qp_num;
        id->other->other_qp_num = param->qp_num;
        id->other->state = ANSWERED;
        struct event *event = tell(id->other, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
        attach(event, param->private_data, param->private_data_len, 196);
    }
    fake_unlock();
    return error ? refuse(error) : 0;
}

static int reject_id(struct rdma_cm_id *base, const void *data, uint8_t len)
{
    struct id *id = id_of(base);

    fake_lock();
    if (id->other) {
        attach(tell(id->other, RDMA_CM_EVENT_REJECTED, 28), data, len, 148);
        id->other->state = ENDED;
        id->other->other = NULL;
        id->other = NULL;
    }
    id->state = ENDED;
    fake_unlock();
    return 0;
}

static int establish_id(struct rdma_cm_id *base)
{
    struct id *id = id_of(base);
    int error = 0;

    fake_lock();
    if (id->state != ANSWERED || !id->other || fake_opts.half_way) {
        error = EINVAL;
    } else {
        id->state = id->other->state = CONNECTED;
        tell(id->other, RDMA_CM_EVENT_ESTABLISHED, 0);
    }
    fake_unlock();
    return error ? refuse(error) : 0;
}

static int disconnect_id(struct rdma_cm_id *base)
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

static int migrate_id(struct rdma_cm_id *base, struct rdma_event_channel *to)
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

static int get_event(struct rdma_event_channel *base, struct rdma_cm_event **out)
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

static int ack_event(struct rdma_cm_event *base)
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
        id->other = NULL;
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

void fake_rdmacm_table(struct trib_verbs_api *api)
{
    api->rdma_create_event_channel = create_channel;
    api->rdma_destroy_event_channel = destroy_channel;
    api->rdma_create_id = create_id;
    api->rdma_destroy_id = destroy_id;
    api->rdma_bind_addr = bind_address;
    api->rdma_listen = listen_id;
    api->rdma_get_src_port = get_port;
    api->rdma_resolve_addr = resolve_address;
    api->rdma_resolve_route = resolve_route;
    api->rdma_init_qp_attr = init_attr;
    api->rdma_connect = connect_id;
    api->rdma_accept = accept_id;
    api->rdma_reject = reject_id;
    api->rdma_establish = establish_id;
    api->rdma_disconnect = disconnect_id;
    api->rdma_migrate_id = migrate_id;
    api->rdma_get_cm_event = get_event;
    api->rdma_ack_cm_event = ack_event;
}
