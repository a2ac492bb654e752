/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The devices of the fake: ports, GIDs and events, and the interface for tests.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness/fake_hub.h"

#define CONTEXTS_MAX 16
#define EVENTS_MAX 16

struct context {
    struct ibv_context base;
    struct ibv_async_event events[EVENTS_MAX];
    int n_events;
    int index; /* in contexts; CONTEXTS_MAX: not listed */
    int mtu; /* enum ibv_mtu */
};

static struct ibv_device devices[FAKE_DEVICES_MAX];
static struct context shared[FAKE_DEVICES_MAX];
static struct context *contexts[CONTEXTS_MAX];

static struct fake_port *port_of(int device, int port)
{
    return &fake_hub->ports[fake_host()][device][port - 1];
}

/* The devices ------------------------------------------------------------------ */

struct ibv_device **ibv_get_device_list(int *n_out)
{
    struct ibv_device **list = calloc(FAKE_DEVICES_MAX + 1, sizeof(*list));
    enum ibv_transport_type type =
        fake_opts.iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;

    /* Ranks that are threads read the list of devices of another rank. */
    fake_lock();
    for (int i = 0; i < fake_opts.devices; i++) {
        list[i] = &devices[i];
        if (devices[i].transport_type != type)
            devices[i].transport_type = type;
    }
    fake_unlock();
    if (n_out)
        *n_out = fake_opts.devices;
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

static void context_init(struct context *c, struct ibv_device *device)
{
    c->base.device = device;
    c->mtu = fake_opts.mtu;
    c->base.async_fd = fake_bell();
    fake_queues_ops(&c->base.ops);
}

struct ibv_context *fake_shared_context(int device)
{
    return device < fake_opts.devices ? &shared[device].base : NULL;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct context *c = calloc(1, sizeof(*c));

    fake_lock();
    context_init(c, device);
    c->index = 0;
    while (c->index < CONTEXTS_MAX && contexts[c->index])
        c->index++;
    if (c->index < CONTEXTS_MAX)
        contexts[c->index] = c;
    else
        fake_mistake("more than %d open devices", CONTEXTS_MAX);
    fake_count(1);
    fake_device_start();
    fake_unlock();
    return &c->base;
}

int ibv_close_device(struct ibv_context *base)
{
    struct context *c = (struct context *)base;

    fake_lock();
    if (fake_queue_pair(base))
        fake_mistake("a device is closed with queue pairs on it");
    if (c->index < CONTEXTS_MAX)
        contexts[c->index] = NULL;
    close(base->async_fd);
    fake_count(-1);
    fake_unlock();
    free(c);
    return 0;
}

int fake_device_of(const struct ibv_context *context)
{
    return (int)(context->device - devices);
}

int fake_mtu_of(const struct ibv_context *context)
{
    return ((const struct context *)context)->mtu;
}

bool fake_port_is_up(const struct ibv_context *context, int port)
{
    return !port_of(fake_device_of(context), port)->down;
}

static uint16_t lid_of(int device, int port)
{
    return (uint16_t)(fake_opts.lid
                          ? fake_opts.lid + device + (port - 1) * FAKE_PORT_LIDS
                          : 0);
}

bool fake_may_become(enum ibv_qp_state from, const struct ibv_qp_attr *attr, int mask)
{
    static const int ready = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                             IBV_QP_MIN_RNR_TIMER;
    static const int send = IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                            IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

    switch (attr->qp_state) {
    case IBV_QPS_INIT:
        return from == IBV_QPS_RESET && mask & IBV_QP_PORT;
    case IBV_QPS_RTR:
        return from == IBV_QPS_INIT && (mask & ready) == ready;
    case IBV_QPS_RTS:
        return from == IBV_QPS_RTR && (mask & send) == send && attr->rnr_retry == 7;
    default:
        return attr->qp_state == IBV_QPS_ERR;
    }
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    memset(attr, 0, sizeof(*attr));
    attr->node_guid = (uint64_t)fake_device_of(context) + 1;
    attr->max_qp_wr = fake_opts.max_qp_wr;
    attr->max_cqe = fake_opts.max_cqe;
    attr->max_srq_wr = fake_opts.max_srq_wr;
    attr->phys_port_cnt = (uint8_t)fake_opts.ports;
    return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port,
                   struct _compat_ibv_port_attr *compat)
{
    struct ibv_port_attr *attr = (struct ibv_port_attr *)compat;

    if (port < 1 || port > fake_opts.ports)
        return EINVAL;
    fake_lock();
    bool up = !fake_opts.port_down && fake_port_is_up(context, port);
    fake_unlock();
    attr->state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    attr->max_msg_sz = fake_opts.message_max;
    attr->active_mtu = (enum ibv_mtu)fake_mtu_of(context);
    attr->gid_tbl_len = FAKE_GIDS;
    attr->lid = lid_of(fake_device_of(context), port);
    attr->link_layer =
        fake_opts.infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
    return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                             size_t max, uint32_t flags, size_t size)
{
    size_t n = 0;

    fake_lock();
    if (flags || size != sizeof(*entries) || max < (size_t)fake_opts.ports * FAKE_GIDS)
        fake_mistake("a table of GIDs of %zu entries", max);
    for (int i = 0; i < fake_opts.ports * FAKE_GIDS; i++) {
        const struct ibv_gid_entry *entry =
            &port_of(fake_device_of(context), i / FAKE_GIDS + 1)->gids[i % FAKE_GIDS];
        if (entry->port_num)
            entries[n++] = *entry;
    }
    fake_unlock();
    return (ssize_t)n;
}

static void set_gid(struct fake_port *at, int port, int n, const char *address,
                    enum ibv_gid_type type)
{
    struct ibv_gid_entry *entry = &at->gids[n];

    *entry = (struct ibv_gid_entry){.gid_index = (uint32_t)n, .gid_type = type};
    if (!address)
        return;
    entry->port_num = (uint32_t)port;
    entry->gid.raw[10] = entry->gid.raw[11] = 0xff;
    if (inet_pton(AF_INET, address, entry->gid.raw + 12) != 1 &&
        inet_pton(AF_INET6, address, entry->gid.raw) != 1)
        fake_mistake("\"%s\" is no address", address);
}

void fake_verbs_gid(int device, int n, const char *address, enum ibv_gid_type type)
{
    fake_lock();
    set_gid(port_of(device, 1), 1, n, address, type);
    fake_unlock();
}

static void reset_port(int host, int device, int port)
{
    struct fake_port *at = &fake_hub->ports[host][device][port - 1];
    char address[32];

    *at = (struct fake_port){.down = false};
    for (int i = 0; i < 4; i++) {
        if (i < 2)
            snprintf(address, sizeof(address), "fe80::%d:%d:%d", host, port,
                     device + 1);
        else
            snprintf(address, sizeof(address), "10.%d.%d.%d", 9 + host, device, port);
        set_gid(at, port, i, address,
                i % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1);
    }
}

static bool has_gid(const struct fake_port *port, const struct ibv_gid_entry *own,
                    const union ibv_gid *gid)
{
    for (int i = 0; i < FAKE_GIDS; i++) {
        const struct ibv_gid_entry *entry = &port->gids[i];
        if (entry->port_num && own->port_num && entry->gid_type == own->gid_type &&
            memcmp(&entry->gid, gid, sizeof(*gid)) == 0)
            return true;
    }
    return false;
}

/* Return whether a port has that GID, of the type of the local one, or that LID. */
bool fake_path_is_right(const struct ibv_context *context,
                        const struct ibv_ah_attr *path)
{
    bool right = false;

    if (!path->is_global && path->dlid == 0) /* as the connection manager's */
        return true;
    if (path->port_num < 1 || path->port_num > fake_opts.ports)
        return false;
    const struct ibv_gid_entry *own = &port_of(fake_device_of(context), path->port_num)
                                           ->gids[path->grh.sgid_index % FAKE_GIDS];
    for (int host = 0; host < fake_opts.hosts; host++)
        for (int device = 0; device < fake_opts.devices; device++)
            for (int port = 1; port <= fake_opts.ports; port++)
                right |= path->is_global
                             ? has_gid(&fake_hub->ports[host][device][port - 1], own,
                                       &path->grh.dgid)
                             : path->dlid == lid_of(device, port);
    return right;
}

void fake_raise(struct ibv_context *context, struct ibv_async_event event)
{
    struct context *c = (struct context *)context;

    if (c->n_events == EVENTS_MAX) {
        fake_mistake("nobody reads the asynchronous events");
        return;
    }
    c->events[c->n_events++] = event;
    fake_ring(c->base.async_fd);
}

int ibv_get_async_event(struct ibv_context *base, struct ibv_async_event *out)
{
    struct context *c = (struct context *)base;
    int result = -1;

    fake_lock();
    errno = EAGAIN;
    if (c->n_events) {
        *out = c->events[0];
        memmove(c->events, c->events + 1, (size_t)--c->n_events * sizeof(*out));
        fake_unring(base->async_fd);
        result = 0;
    }
    fake_unlock();
    return result;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    (void)event;
}

int ibv_fork_init(void)
{
    fake_lock();
    fake_opts.fork_calls++;
    int error = fake_opts.fork_errno;
    fake_unlock();
    return error;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
    fake_lock();
    bool called = fake_opts.fork_calls > 0, unneeded = fake_opts.fork_unneeded;
    fake_unlock();
    if (unneeded)
        return IBV_FORK_UNNEEDED;
    return called ? IBV_FORK_ENABLED : IBV_FORK_DISABLED;
}

static int own_addresses(uint8_t (*out)[16], int max)
{
    int n = 0;

    for (; n < fake_opts.devices * fake_opts.ports && n < max; n++) {
        uint8_t device = (uint8_t)(n / fake_opts.ports);
        uint8_t port = (uint8_t)(n % fake_opts.ports + 1);
        memcpy(out[n], (uint8_t[16]){[10] = 0xff, 0xff, 127, 9, device, port}, 16);
    }
    return n;
}

/* Interface of tests --------------------------------------------------------------- */

bool trib_verbs_present(void)
{
    return fake_opts.devices > 0 || fake_opts.no_library;
}

bool trib_verbs_load(struct trib_verbs_api *api, char *why, size_t bytes)
{
    if (fake_opts.no_library) {
        snprintf(why, bytes, "libibverbs.so.1: cannot open shared object file");
        return false;
    }
    *api = (struct trib_verbs_api){
#define ROW(name) .name = name,
        TRIB_VERBS_CALLS(ROW) TRIB_RDMACM_CALLS(ROW)
#undef ROW
            .ibv_reg_mr_iova = ibv_reg_mr_iova,
        .ibv_reg_dmabuf_mr = ibv_reg_dmabuf_mr,
        .ibv_is_fork_initialized =
            fake_opts.no_fork_query ? NULL : ibv_is_fork_initialized,
        ._ibv_query_gid_table = fake_opts.no_gid_query ? NULL : _ibv_query_gid_table,
        .own_addresses = own_addresses,
    };
    fake_memory_table(api);
    if (fake_opts.no_rdmacm)
        snprintf(api->no_rdmacm, sizeof(api->no_rdmacm),
                 "librdmacm.so.1: cannot open shared object file");
    return true;
}

struct fake_verbs_opts *fake_verbs_machine(void)
{
    fake_opts = (struct fake_verbs_opts){
        .hosts = 1,
        .devices = 1,
        .ports = 1,
        .inline_max = 256,
        .message_max = 1u << 30,
        .mtu = IBV_MTU_4096,
        .max_cqe = 1 << 20,
        .max_srq_wr = 1 << 15,
        .max_qp_wr = 4096,
    };
    for (int host = 0; host < FAKE_HOSTS_MAX; host++)
        for (int i = 0; i < FAKE_DEVICES_MAX; i++)
            for (int port = 1; port <= FAKE_PORTS_MAX; port++)
                reset_port(host, i, port);
    return &fake_opts;
}

void fake_verbs_begin(void)
{
    memset(contexts, 0, sizeof(contexts));
    for (int i = 0; i < FAKE_DEVICES_MAX; i++) {
        snprintf(devices[i].name, sizeof(devices[i].name), "fake%d", i);
        if (!shared[i].base.device)
            context_init(&shared[i], &devices[i]);
    }
    fake_memory_reset();
    fake_queues_reset();
    fake_rdmacm_reset();
}

struct fake_verbs_opts *fake_verbs_reset(void)
{
    fake_hub_reset();
    struct fake_verbs_opts *opts = fake_verbs_machine();
    fake_verbs_begin();
    return opts;
}

void fake_verbs_port(int device, int port, bool up)
{
    struct ibv_async_event event = {.element.port_num = port};

    event.event_type = up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR;
    fake_lock();
    port_of(device, port)->down = !up;
    for (int i = 0; i < CONTEXTS_MAX; i++) {
        if (contexts[i] && fake_device_of(&contexts[i]->base) == device)
            fake_raise(&contexts[i]->base, event);
    }
    fake_queues_run();
    fake_unlock();
}

void fake_verbs_async(int context, enum ibv_event_type type)
{
    struct ibv_async_event event = {.event_type = type, .element.port_num = 1};

    fake_lock();
    if (type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
        type == IBV_EVENT_QP_ACCESS_ERR)
        event.element.qp = fake_queue_pair(&contexts[context]->base);
    fake_raise(&contexts[context]->base, event);
    fake_unlock();
}

bool fake_verbs_async_waits(int context)
{
    fake_lock();
    bool waits = contexts[context] && contexts[context]->n_events > 0;
    fake_unlock();
    return waits;
}

int fake_verbs_carried(int device, int port)
{
    fake_lock();
    int n = fake_hub->ports[fake_host()][device][port - 1].carried;
    fake_unlock();
    return n;
}
