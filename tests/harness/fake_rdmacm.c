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

#include "tests/harness/fake_cm.h"

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out,
                   void *context, enum rdma_port_space ps)
{
    (void)ps;
    fake_lock();
    *out = &fake_cm_new_id(channel, context)->base;
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
    struct fake_cm_id *id = fake_cm_id_of(base);
    const struct fake_place p = fake_place_of(address);
    uint16_t port = port_of(address);
    int error = 0;

    fake_lock();
    const int host = fake_cm_host(id);
    for (struct fake_cm_id *i = fake_cm_ids; i && port; i = i->next) {
        if (i->port == port && i->state != CALLED && i->state != CONNECTED &&
            fake_cm_host(i) == host)
            error = EADDRINUSE;
    }
    if (port && fake_find_listener(host, port))
        error = EADDRINUSE;
    if (p.device >= 0 && p.host != host)
        error = EADDRNOTAVAIL;
    if (!error) {
        id->port = port ? port : fake_hub->next_port++;
        base->verbs = p.device < 0 ? NULL : fake_shared_context(host, p.device);
        base->port_num = p.port;
    }
    fake_unlock();
    return error ? refuse(error) : 0;
}

int rdma_listen(struct rdma_cm_id *base, int backlog)
{
    (void)backlog;
    fake_lock();
    fake_cm_id_of(base)->state = LISTENING;
    fake_add_listener(fake_cm_host(fake_cm_id_of(base)), fake_cm_id_of(base)->number,
                      fake_cm_id_of(base)->port);
    fake_device_start();
    fake_unlock();
    return 0;
}

__be16 rdma_get_src_port(struct rdma_cm_id *base)
{
    return htons(fake_cm_id_of(base)->port);
}

int rdma_resolve_addr(struct rdma_cm_id *base, struct sockaddr *from,
                      struct sockaddr *to, int timeout_ms)
{
    struct fake_cm_id *id = fake_cm_id_of(base);
    const struct fake_place p = fake_place_of(to);

    (void)from;
    (void)timeout_ms;
    fake_lock();
    if (fake_opts.address_errors || p.device < 0 || p.host < 0 ||
        p.host >= fake_opts.hosts) {
        fake_cm_tell(id, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
    } else {
        base->verbs = fake_shared_context(fake_cm_host(id), fake_opts.other_device
                                                                ? fake_opts.devices - 1
                                                                : p.device);
        base->port_num = fake_opts.other_port ? (uint8_t)fake_opts.ports : p.port;
        id->port = port_of(to);
        id->to_host = p.host;
        id->to_device = p.device;
        id->to_port = p.port;
        fake_cm_tell(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    }
    fake_unlock();
    return 0;
}

int rdma_resolve_route(struct rdma_cm_id *base, int timeout_ms)
{
    (void)timeout_ms;
    fake_lock();
    fake_cm_tell(fake_cm_id_of(base), RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    fake_unlock();
    return 0;
}

int rdma_set_option(struct rdma_cm_id *base, int level, int name, void *value,
                    size_t len)
{
    if (level != RDMA_OPTION_ID || len != 1)
        return refuse(EINVAL);
    if (name == RDMA_OPTION_ID_TOS) {
        fake_lock();
        fake_cm_id_of(base)->tos = *(const uint8_t *)value;
        fake_unlock();
        return 0;
    }
    return name == RDMA_OPTION_ID_ACK_TIMEOUT ? 0 : refuse(ENOSYS);
}

enum { CM_GID = 3 }; /* RoCE v2, IPv4 */

/* Return the traffic class of an id's packets. */
static uint8_t class_of(const struct fake_cm_id *id)
{
    return id->tos >= 0
               ? (uint8_t)id->tos
               : fake_context_port(id->base.verbs, id->base.port_num)->opts.roce_tos;
}

int rdma_init_qp_attr(struct rdma_cm_id *base, struct ibv_qp_attr *attr, int *mask)
{
    struct fake_cm_id *id = fake_cm_id_of(base);
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
        attr->ah_attr.port_num = base->port_num;
        attr->ah_attr.grh.traffic_class = class_of(id);
        attr->ah_attr.grh.hop_limit = 64;
        attr->ah_attr.grh.sgid_index = CM_GID;
        if (!id->other_qp_num)
            fake_mistake("ready to receive before the other queue pair is known");
    }
    fake_unlock();
    return 0;
}

int rdma_connect(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
    struct fake_cm_id *id = fake_cm_id_of(base);

    fake_lock();
    const struct fake_listener *l = fake_find_listener(id->to_host, id->port);
    id->state = CALLING;
    id->qp_num = param->qp_num;
    if (fake_opts.reject || !l) {
        fake_cm_tell(id, RDMA_CM_EVENT_REJECTED, l ? fake_opts.reject : 8);
    } else if (!fake_opts.deaf) {
        id->other_process = l->process;
        id->other = l->id;
        fake_cm_send(id,
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
    struct fake_cm_id *id = fake_cm_id_of(base);
    int error = 0;

    fake_lock();
    if (id->state != CALLED || id->other_process < 0) {
        error = EINVAL;
    } else {
        id->state = ANSWERED;
        id->qp_num = param->qp_num;
        fake_cm_send(id,
                     (struct fake_cm_message){.type = RDMA_CM_EVENT_CONNECT_RESPONSE,
                                              .qp_num = param->qp_num},
                     param->private_data, param->private_data_len);
    }
    fake_unlock();
    return error ? refuse(error) : 0;
}

int rdma_reject(struct rdma_cm_id *base, const void *data, uint8_t len)
{
    struct fake_cm_id *id = fake_cm_id_of(base);

    fake_lock();
    if (id->other_process >= 0)
        fake_cm_send(
            id, (struct fake_cm_message){.type = RDMA_CM_EVENT_REJECTED, .status = 28},
            data, len);
    id->other_process = -1;
    id->state = ENDED;
    fake_unlock();
    return 0;
}

int rdma_establish(struct rdma_cm_id *base)
{
    struct fake_cm_id *id = fake_cm_id_of(base);
    int error = 0;

    fake_lock();
    if (id->state != ANSWERED || id->other_process < 0 || fake_opts.half_way) {
        error = EINVAL;
    } else {
        id->state = CONNECTED;
        fake_cm_send(id, (struct fake_cm_message){.type = RDMA_CM_EVENT_ESTABLISHED},
                     NULL, 0);
    }
    fake_unlock();
    return error ? refuse(error) : 0;
}

int rdma_disconnect(struct rdma_cm_id *base)
{
    struct fake_cm_id *id = fake_cm_id_of(base);

    fake_lock();
    bool connected = id->state == CONNECTED;
    if (connected) {
        fake_cm_part(id);
        id->state = ENDED;
        fake_cm_tell(id, RDMA_CM_EVENT_DISCONNECTED, 0);
    }
    fake_unlock();
    return connected ? 0 : refuse(EINVAL);
}

void fake_verbs_cut(void)
{
    fake_lock();
    for (struct fake_cm_id *id = fake_cm_ids; id; id = id->next) {
        if (id->state != CONNECTED)
            continue;
        id->state = ENDED;
        id->other_process = -1;
        fake_cm_tell(id, RDMA_CM_EVENT_DISCONNECTED, 0);
    }
    fake_unlock();
}

void fake_verbs_unplug(void)
{
    fake_lock();
    for (struct fake_cm_id *id = fake_cm_ids; id; id = id->next) {
        if (id->state == CONNECTED)
            fake_cm_tell(id, RDMA_CM_EVENT_UNREACHABLE, ETIMEDOUT);
    }
    fake_unlock();
}

void fake_verbs_remove(void)
{
    fake_lock();
    for (struct fake_cm_id *id = fake_cm_ids; id; id = id->next) {
        if (id->state == LISTENING)
            fake_cm_tell(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
    }
    fake_unlock();
}
