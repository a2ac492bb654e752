/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device contexts of the fake and their events, and the interface for tests.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/numa.h"
#include "base/rdma_counters.h"
#include "tests/harness/fake_hub.h"

#define CONTEXTS_MAX 4096

struct context {
    struct ibv_context base;
    struct fake_events events;
    int host, device;
    int index; /* in contexts; CONTEXTS_MAX: not listed */
    int mtu; /* enum ibv_mtu */
};

static struct ibv_device devices[FAKE_HOSTS_MAX][FAKE_DEVICES_MAX];
static struct context shared[FAKE_HOSTS_MAX][FAKE_DEVICES_MAX];
static struct context *contexts[CONTEXTS_MAX];

static struct context *context_of(const struct ibv_context *context)
{
    return (struct context *)(uintptr_t)context;
}

struct fake_events *fake_events_of(struct ibv_context *context)
{
    return &context_of(context)->events;
}

struct fake_port *fake_context_port(const struct ibv_context *context, int port)
{
    return fake_port(context_of(context)->host, context_of(context)->device, port);
}

/* The devices ------------------------------------------------------------------ */

bool fake_is_iwarp(const struct ibv_context *context)
{
    return fake_opts.iwarp ||
           fake_device(context_of(context)->host, context_of(context)->device)
               ->opts.iwarp;
}

bool fake_no_srq(const struct ibv_context *context)
{
    return fake_device(context_of(context)->host, context_of(context)->device)
        ->opts.no_srq;
}

/* Threads read these entries without the lock, so write only changes. */
static struct ibv_device *device_of(int host, int device)
{
    struct ibv_device *at = &devices[host][device];
    const struct fake_device_opts *opts = &fake_device(host, device)->opts;
    const enum ibv_transport_type type =
        fake_opts.iwarp || opts->iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;

    if (at->transport_type != type)
        at->transport_type = type;
    if (strcmp(at->name, opts->name) != 0)
        snprintf(at->name, sizeof(at->name), "%s", opts->name);
    return at;
}

struct ibv_device **ibv_get_device_list(int *n_out)
{
    struct ibv_device **list = calloc(FAKE_DEVICES_MAX + 1, sizeof(*list));

    fake_lock();
    for (int i = 0; i < fake_opts.devices; i++)
        list[i] = device_of(fake_host(), i);
    fake_unlock();
    if (n_out)
        *n_out = fake_opts.devices;
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

static void context_init(struct context *c, int host, int device)
{
    c->host = host;
    c->device = device;
    c->base.device = device_of(host, device);
    c->mtu = fake_opts.mtu;
    c->base.async_fd = fake_bell();
    c->base.num_comp_vectors = fake_opts.comp_vectors;
    fake_queues_ops(&c->base.ops);
}

struct ibv_context *fake_shared_context(int host, int device)
{
    if (device >= fake_opts.devices)
        return NULL;
    if (!shared[host][device].base.device)
        context_init(&shared[host][device], host, device);
    return &shared[host][device].base;
}

static void insert(struct context *c)
{
    while (c->index < CONTEXTS_MAX && contexts[c->index])
        c->index++;
    if (c->index < CONTEXTS_MAX)
        contexts[c->index] = c;
    else
        fake_mistake("more than %d open devices", CONTEXTS_MAX);
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct context *c = calloc(1, sizeof(*c));
    const ptrdiff_t at = device - devices[0];

    errno = fake_opts.open_errno;
    if (errno) {
        free(c);
        return NULL;
    }
    fake_lock();
    context_init(c, (int)(at / FAKE_DEVICES_MAX), (int)(at % FAKE_DEVICES_MAX));
    const bool is_dead = fake_device(c->host, c->device)->is_dead;
    const bool fits =
        !is_dead && fake_use(&c->base, (struct fake_usage){.contexts = 1});
    if (fits) {
        insert(c);
        fake_count(1);
        fake_device_start();
    }
    fake_unlock();
    if (fits)
        return &c->base;
    close(c->base.async_fd);
    free(c);
    errno = is_dead ? EIO : ENOMEM;
    return NULL;
}

int ibv_close_device(struct ibv_context *base)
{
    struct context *c = (struct context *)base;

    fake_lock();
    if (fake_queue_pair(base))
        fake_mistake("a device is closed with queue pairs on it");
    if (fake_domains(base))
        fake_mistake("a device is closed with protection domains on it");
    if (c->index < CONTEXTS_MAX)
        contexts[c->index] = NULL;
    fake_unuse(base, (struct fake_usage){.contexts = 1});
    close(base->async_fd);
    fake_count(-1);
    fake_unlock();
    free(c);
    return 0;
}

int fake_device_of(const struct ibv_context *context)
{
    return context_of(context)->device;
}

int fake_host_of(const struct ibv_context *context)
{
    return context_of(context)->host;
}

int fake_mtu_of(const struct ibv_context *context, int port)
{
    const int mtu = fake_context_port(context, port)->opts.mtu;

    return mtu ? mtu : context_of(context)->mtu;
}

bool fake_port_is_up(const struct ibv_context *context, int port)
{
    return !fake_context_port(context, port)->down;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    memset(attr, 0, sizeof(*attr));
    attr->node_guid = 1 + (uint64_t)fake_device_of(context) +
                      (uint64_t)fake_host_of(context) * FAKE_DEVICES_MAX;
    attr->max_qp = fake_opts.max_qp ? fake_opts.max_qp : FAKE_QPS_MAX;
    attr->max_qp_wr = fake_opts.max_qp_wr;
    attr->max_cqe = fake_opts.max_cqe;
    attr->max_srq_wr = fake_no_srq(context) ? 0 : fake_opts.max_srq_wr;
    attr->max_pkeys = FAKE_PKEYS;
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
    attr->active_speed = fake_context_port(context, port)->opts.active_speed;
    attr->active_width = fake_context_port(context, port)->opts.active_width;
    attr->active_mtu = (enum ibv_mtu)fake_mtu_of(context, port);
    fake_unlock();
    attr->state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    attr->max_msg_sz = fake_opts.message_max;
    attr->max_mtu = IBV_MTU_4096;
    attr->gid_tbl_len = FAKE_GIDS;
    attr->pkey_tbl_len = FAKE_PKEYS;
    attr->lid = fake_lid(fake_device_of(context), port);
    attr->link_layer =
        fake_opts.infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
    return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *out)
{
    if (port < 1 || port > fake_opts.ports || index < 0 || index >= FAKE_PKEYS)
        return EINVAL;
    fake_lock();
    *out = htons(fake_context_port(context, port)->opts.pkeys[index]);
    fake_unlock();
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
            &fake_context_port(context, i / FAKE_GIDS + 1)->gids[i % FAKE_GIDS];
        if (entry->port_num)
            entries[n++] = *entry;
    }
    fake_unlock();
    return (ssize_t)n;
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
        const struct fake_place place = {fake_host(), n / fake_opts.ports,
                                         (uint8_t)(n % fake_opts.ports + 1)};
        memcpy(out[n], (uint8_t[16]){[10] = 0xff, 0xff}, 16);
        fake_place_address(place, out[n] + 12);
        out[n][12] = 127;
    }
    return n;
}

static struct fake_port_opts opts_of(const char *device, int port)
{
    struct fake_port_opts found = {.roce_tos = 0};

    fake_lock();
    for (int i = 0; i < fake_opts.devices; i++)
        if (strcmp(fake_device(fake_host(), i)->opts.name, device) == 0)
            found = fake_port(fake_host(), i, port)->opts;
    fake_unlock();
    return found;
}

static int default_tos(const char *device, int port)
{
    return opts_of(device, port).roce_tos;
}

static bool read_counters(const char *device, int port, struct trib_rdma_counters *out)
{
    *out = (struct trib_rdma_counters){.port = port};
    out->has[TRIB_RDMA_ACK_TIMEOUT] = true;
    out->count[TRIB_RDMA_ACK_TIMEOUT] = opts_of(device, port).ack_timeouts;
    return true;
}

/* The ranks run on NUMA node 0. */
static int fake_distance(const struct ibv_device *device)
{
    const int at = (int)(device - devices[0]);
    const int node =
        fake_device(at / FAKE_DEVICES_MAX, at % FAKE_DEVICES_MAX)->opts.numa_node;

    return node < 0 ? 0 : (node + 1) * TRIB_NUMA_LOCAL;
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
        .default_tos = default_tos,
        .distance = fake_distance,
        .counters = read_counters,
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
        .comp_vectors = 1,
        .max_srq_wr = 1 << 15,
        .max_qp_wr = 4096,
        .fork_unneeded = true,
    };
    return &fake_opts;
}

void fake_verbs_begin(void)
{
    memset(contexts, 0, sizeof(contexts));
    fake_events_reset();
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

void fake_device_event(int host, const struct fake_event *event)
{
    for (int i = 0; i < CONTEXTS_MAX; i++)
        if (contexts[i] && contexts[i]->host == host &&
            contexts[i]->device == event->device)
            fake_raise(&contexts[i]->base,
                       (struct ibv_async_event){.event_type = event->type,
                                                .element.port_num = event->port});
    if (event->type == IBV_EVENT_DEVICE_FATAL)
        fake_queues_break(host, event->device);
    (void)fake_queues_run();
}

void fake_set_link(int host, int device, int port, bool up)
{
    struct fake_port *at = fake_port(host, device, port);

    at->counters[FAKE_LINK_DOWNED] += !up && !at->down;
    at->down = !up;
    fake_announce(host, (struct fake_event){.type = up ? IBV_EVENT_PORT_ACTIVE
                                                       : IBV_EVENT_PORT_ERR,
                                            .device = device,
                                            .port = port});
}

void fake_verbs_port(int device, int port, bool up)
{
    fake_lock();
    fake_set_link(fake_host(), device, port, up);
    fake_unlock();
}

void fake_verbs_async(int context, enum ibv_event_type type)
{
    fake_lock();
    fake_raise(&contexts[context]->base,
               (struct ibv_async_event){.event_type = type, .element.port_num = 1});
    fake_unlock();
}

int fake_verbs_contexts(void)
{
    int n = 0;

    fake_lock();
    for (int i = 0; i < CONTEXTS_MAX; i++)
        n += contexts[i] != NULL;
    fake_unlock();
    return n;
}

bool fake_verbs_async_waits(int context)
{
    fake_lock();
    bool waits = contexts[context] && contexts[context]->events.n > 0;
    fake_unlock();
    return waits;
}
