/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ids of the fake's connection manager, their events, and the messages that they
 * receive.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness/fake_cm.h"

struct channel {
    struct rdma_event_channel base;
    int host, ids;
    struct fake_cm_event *queue;
};

enum { BUCKETS = 1 << 14 };

struct fake_cm_id *fake_cm_ids;

static struct fake_cm_id *by_number[BUCKETS], *children[BUCKETS];

void fake_rdmacm_reset(void)
{
    fake_cm_ids = NULL;
    memset(by_number, 0, sizeof(by_number));
    memset(children, 0, sizeof(children));
}

static void append(struct channel *channel, struct fake_cm_event *event)
{
    struct fake_cm_event **end = &channel->queue;

    while (*end)
        end = &(*end)->next;
    *end = event;
    event->next = NULL;
    fake_ring(channel->base.fd);
}

struct fake_cm_event *fake_cm_tell(struct fake_cm_id *id, enum rdma_cm_event_type type,
                                   int status)
{
    struct fake_cm_event *event = calloc(1, sizeof(*event));

    event->base.id = &id->base;
    event->base.event = type;
    event->base.status = status;
    event->counts = id;
    append((struct channel *)id->base.channel, event);
    return event;
}

static void attach(struct fake_cm_event *event, const void *data, size_t len,
                   size_t room)
{
    if (len > room)
        fake_mistake("private data of %zu bytes, room for %zu", len, room);
    else
        memcpy(event->bytes, data, len);
    event->base.param.conn.private_data = event->bytes;
    event->base.param.conn.private_data_len = (uint8_t)room;
}

int fake_cm_host(const struct fake_cm_id *id)
{
    return ((const struct channel *)id->base.channel)->host;
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
    channel->host = fake_host();
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
    if (channel->ids)
        fake_mistake("an event channel is destroyed before its ids");
    close(base->fd);
    fake_count(-1);
    fake_unlock();
    free(channel);
}

struct fake_cm_id *fake_cm_new_id(struct rdma_event_channel *channel, void *context)
{
    struct fake_cm_id *id = calloc(1, sizeof(*id));

    id->base.channel = channel;
    id->base.context = context;
    id->base.ps = RDMA_PS_TCP;
    id->number = fake_hub->next_id++;
    id->other_process = -1;
    id->tos = -1;
    ((struct channel *)channel)->ids++;
    id->next = fake_cm_ids;
    id->at = &fake_cm_ids;
    if (fake_cm_ids)
        fake_cm_ids->at = &id->next;
    fake_cm_ids = id;
    id->next_same = by_number[id->number % BUCKETS];
    by_number[id->number % BUCKETS] = id;
    fake_count(1);
    return id;
}

void fake_cm_send(struct fake_cm_id *id, struct fake_cm_message cm, const void *data,
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

void fake_cm_part(struct fake_cm_id *id)
{
    const bool has_other = id->other_process >= 0;

    if (has_other)
        fake_cm_send(id, (struct fake_cm_message){.type = RDMA_CM_EVENT_DISCONNECTED},
                     NULL, 0);
    id->other_process = -1;
}

static void take_out(struct fake_cm_id *id)
{
    struct fake_cm_id **same = &by_number[id->number % BUCKETS];
    struct fake_cm_id **child = &children[id->caller % BUCKETS];

    while (*same != id)
        same = &(*same)->next_same;
    *same = id->next_same;
    while (id->is_child && *child != id)
        child = &(*child)->next_child;
    if (id->is_child)
        *child = id->next_child;
    *id->at = id->next;
    if (id->next)
        id->next->at = id->at;
    ((struct channel *)id->base.channel)->ids--;
    fake_count(-1);
    free(id);
}

/* Drop the unread events of an id; its destruction waits for the others. */
static void drop_events(struct fake_cm_id *id)
{
    struct channel *channel = (struct channel *)id->base.channel;

    for (struct fake_cm_event **at = &channel->queue; *at;) {
        struct fake_cm_event *event = *at;
        if (event->base.id != &id->base && event->counts != id) {
            at = &event->next;
            continue;
        }
        *at = event->next;
        fake_unring(channel->base.fd);
        if (event->base.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
            fake_cm_part(fake_cm_id_of(event->base.id));
            take_out(fake_cm_id_of(event->base.id));
        }
        free(event);
    }
}

int rdma_destroy_id(struct rdma_cm_id *base)
{
    struct fake_cm_id *id = fake_cm_id_of(base);

    fake_lock();
    fake_cm_part(id);
    fake_remove_listener(id->number);
    drop_events(id);
    while (id->acked < id->reported) {
        if (!fake_wait()) {
            fake_mistake("an id is destroyed before its events are acknowledged");
            break;
        }
    }
    take_out(id);
    fake_unlock();
    return 0;
}

int rdma_migrate_id(struct rdma_cm_id *base, struct rdma_event_channel *to)
{
    struct channel *from = (struct channel *)base->channel;

    fake_lock();
    base->channel = to;
    from->ids--;
    ((struct channel *)to)->ids++;
    for (struct fake_cm_event **at = &from->queue; *at;) {
        struct fake_cm_event *event = *at;
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
    struct fake_cm_event *event = channel->queue;
    if (event) {
        channel->queue = event->next;
        fake_unring(base->fd);
        event->counts->reported++;
        *out = &event->base;
    }
    fake_unlock();
    errno = EAGAIN;
    return event ? 0 : -1;
}

int rdma_ack_cm_event(struct rdma_cm_event *base)
{
    struct fake_cm_event *event = (struct fake_cm_event *)base;

    fake_lock();
    event->counts->acked++;
    fake_changed();
    fake_unlock();
    free(event);
    return 0;
}

/* Messages of other ids ------------------------------------------------------------ */

/* Return the id that a message is for. A caller may not know the number of the id that
 * its request made; it then has the listener's. */
static struct fake_cm_id *receiver(const struct fake_message *m)
{
    struct fake_cm_id *id = by_number[m->to_id % BUCKETS];

    while (id && id->number != m->to_id)
        id = id->next_same;
    if (!id || id->state != LISTENING || m->cm.type == RDMA_CM_EVENT_CONNECT_REQUEST)
        return id;
    id = children[m->from_id % BUCKETS];
    while (id && (id->caller != m->from_id || id->other_process != m->from))
        id = id->next_child;
    return id;
}

static void request(struct fake_cm_id *listener, const struct fake_message *m)
{
    struct fake_cm_id *child =
        fake_cm_new_id(listener->base.channel, listener->base.context);

    child->base.verbs = fake_shared_context(fake_cm_host(listener), m->cm.device);
    child->base.port_num = m->cm.port;
    child->state = CALLED;
    child->other_process = m->from;
    child->other = child->caller = m->from_id;
    child->is_child = true;
    child->next_child = children[child->caller % BUCKETS];
    children[child->caller % BUCKETS] = child;
    child->other_qp_num = m->cm.qp_num;
    struct fake_cm_event *event = fake_cm_tell(child, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    event->base.listen_id = &listener->base;
    event->counts = listener;
    attach(event, m->bytes, m->cm.len, 56);
}

static void response(struct fake_cm_id *id, const struct fake_message *m)
{
    id->state = ANSWERED;
    id->other = m->from_id;
    id->other_qp_num = m->cm.qp_num;
    attach(fake_cm_tell(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0), m->bytes, m->cm.len,
           196);
}

static void end(struct fake_cm_id *id, const struct fake_message *m)
{
    const bool answered = id->state == CONNECTED || id->state == ANSWERED;

    if (m->cm.type == RDMA_CM_EVENT_REJECTED)
        attach(fake_cm_tell(id, RDMA_CM_EVENT_REJECTED, m->cm.status), m->bytes,
               m->cm.len, 148);
    else
        fake_cm_tell(id, answered ? RDMA_CM_EVENT_DISCONNECTED : RDMA_CM_EVENT_REJECTED,
                     4);
    id->state = ENDED;
    id->other_process = -1;
}

void fake_rdmacm_event(const struct fake_message *m)
{
    struct fake_cm_id *id = receiver(m);

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
        fake_cm_tell(id, RDMA_CM_EVENT_ESTABLISHED, 0);
        break;
    default:
        if (id->state != LISTENING)
            end(id, m);
        break;
    }
}

void fake_rdmacm_check(void)
{
    for (struct fake_cm_id *id = fake_cm_ids; id; id = id->next) {
        if (id->other_process < 0 || !fake_has_ended(id->other_process))
            continue;
        id->other_process = -1;
        fake_cm_tell(id,
                     id->state == CALLING ? RDMA_CM_EVENT_UNREACHABLE
                                          : RDMA_CM_EVENT_DISCONNECTED,
                     0);
        id->state = ENDED;
    }
}
