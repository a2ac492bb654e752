/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device of the fake: ports, GIDs and events, and the interface for tests.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "tests/harness/fake_hub.h"

#define CONTEXTS_MAX 16
#define EVENTS_MAX 16
#define WAIT_SECONDS 10

struct context {
    struct ibv_context base;
    struct ibv_async_event events[EVENTS_MAX];
    int n_events;
    int index; /* in contexts; CONTEXTS_MAX: not listed */
    int mtu; /* enum ibv_mtu */
};

struct fake_verbs_opts fake_opts;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct ibv_device devices[FAKE_DEVICES_MAX];
static struct context shared[FAKE_DEVICES_MAX];
static struct context *contexts[CONTEXTS_MAX];
/* port_num 0: a hole */
static struct ibv_gid_entry gids[FAKE_DEVICES_MAX][FAKE_PORTS_MAX][FAKE_GIDS];
static bool down[FAKE_DEVICES_MAX][FAKE_PORTS_MAX];
static int mistakes, live;

void fake_lock(void)
{
    pthread_mutex_lock(&lock);
}

void fake_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

bool fake_wait(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_SECONDS;
    return pthread_cond_timedwait(&changed, &lock, &until) == 0;
}

void fake_changed(void)
{
    pthread_cond_broadcast(&changed);
}

void fake_mistake(const char *format, ...)
{
    va_list args;

    mistakes++;
    va_start(args, format);
    fprintf(stderr, "fake verbs: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
}

void fake_count(int objects)
{
    live += objects;
}

int fake_bell(void)
{
    return eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE | EFD_NONBLOCK);
}

void fake_ring(int fd)
{
    uint64_t one = 1;

    if (write(fd, &one, sizeof(one)) < 0)
        fake_mistake("a bell that cannot be rung: %m");
}

void fake_unring(int fd)
{
    uint64_t one;

    if (read(fd, &one, sizeof(one)) < 0)
        fake_mistake("a bell that did not ring: %m");
}

/* The device ------------------------------------------------------------------- */

static struct ibv_device **get_device_list(int *n_out)
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

static void free_device_list(struct ibv_device **list)
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

static struct ibv_context *open_device(struct ibv_device *device)
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
    fake_unlock();
    return &c->base;
}

static int close_device(struct ibv_context *base)
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
    return !down[fake_device_of(context)][port - 1];
}

static uint16_t lid_of(int device, int port)
{
    return (uint16_t)(fake_opts.lid
                          ? fake_opts.lid + device + (port - 1) * FAKE_PORT_LIDS
                          : 0);
}

static int query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    memset(attr, 0, sizeof(*attr));
    attr->node_guid = (uint64_t)fake_device_of(context) + 1;
    attr->max_qp_wr = fake_opts.max_qp_wr;
    attr->max_cqe = fake_opts.max_cqe;
    attr->max_srq_wr = fake_opts.max_srq_wr;
    attr->phys_port_cnt = (uint8_t)fake_opts.ports;
    return 0;
}

static int query_port(struct ibv_context *context, uint8_t port,
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

static ssize_t query_gid_table(struct ibv_context *context,
                               struct ibv_gid_entry *entries, size_t max,
                               uint32_t flags, size_t size)
{
    size_t n = 0;

    fake_lock();
    if (flags || size != sizeof(*entries) || max < (size_t)fake_opts.ports * FAKE_GIDS)
        fake_mistake("a table of GIDs of %zu entries", max);
    for (int i = 0; i < fake_opts.ports * FAKE_GIDS; i++) {
        const struct ibv_gid_entry *entry =
            &gids[fake_device_of(context)][i / FAKE_GIDS][i % FAKE_GIDS];
        if (entry->port_num)
            entries[n++] = *entry;
    }
    fake_unlock();
    return (ssize_t)n;
}

static void set_gid(int device, int port, int n, const char *address,
                    enum ibv_gid_type type)
{
    struct ibv_gid_entry *entry = &gids[device][port - 1][n];

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
    set_gid(device, 1, n, address, type);
    fake_unlock();
}

static void reset_gids(int device, int port)
{
    char address[32];

    for (int i = 0; i < FAKE_GIDS; i++)
        set_gid(device, port, i, NULL, IBV_GID_TYPE_IB);
    for (int i = 0; i < 4; i++) {
        if (i < 2)
            snprintf(address, sizeof(address), "fe80::%d:%d", port, device + 1);
        else
            snprintf(address, sizeof(address), "10.9.%d.%d", device, port);
        set_gid(device, port, i, address,
                i % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1);
    }
}

static bool has_gid(int device, int port, const struct ibv_gid_entry *own,
                    const union ibv_gid *gid)
{
    for (int i = 0; i < FAKE_GIDS; i++) {
        const struct ibv_gid_entry *entry = &gids[device][port - 1][i];
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
    const struct ibv_gid_entry *own;
    bool right = false;

    if (!path->is_global && path->dlid == 0) /* as the connection manager's */
        return true;
    if (path->port_num < 1 || path->port_num > fake_opts.ports)
        return false;
    own = &gids[fake_device_of(context)][path->port_num - 1]
               [path->grh.sgid_index % FAKE_GIDS];
    for (int i = 0; i < fake_opts.devices * fake_opts.ports; i++) {
        int device = i / fake_opts.ports, port = i % fake_opts.ports + 1;
        right |= path->is_global ? has_gid(device, port, own, &path->grh.dgid)
                                 : path->dlid == lid_of(device, port);
    }
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

static int get_async_event(struct ibv_context *base, struct ibv_async_event *out)
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

static void ack_async_event(struct ibv_async_event *event)
{
    (void)event;
}

static int fork_init(void)
{
    fake_lock();
    fake_opts.fork_calls++;
    int error = fake_opts.fork_errno;
    fake_unlock();
    return error;
}

static enum ibv_fork_status is_fork_initialized(void)
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
        .ibv_get_device_list = get_device_list,
        .ibv_free_device_list = free_device_list,
        .ibv_open_device = open_device,
        .ibv_close_device = close_device,
        .ibv_query_device = query_device,
        .ibv_query_port = query_port,
        .ibv_get_async_event = get_async_event,
        .ibv_ack_async_event = ack_async_event,
        .ibv_fork_init = fork_init,
        .ibv_is_fork_initialized =
            fake_opts.no_fork_query ? NULL : is_fork_initialized,
        ._ibv_query_gid_table = fake_opts.no_gid_query ? NULL : query_gid_table,
        .own_addresses = own_addresses,
    };
    fake_memory_table(api);
    fake_queues_table(api);
    fake_rdmacm_table(api);
    if (fake_opts.no_rdmacm)
        snprintf(api->no_rdmacm, sizeof(api->no_rdmacm),
                 "librdmacm.so.1: cannot open shared object file");
    return true;
}

struct fake_verbs_opts *fake_verbs_reset(void)
{
    fake_lock();
    fake_opts = (struct fake_verbs_opts){
        .devices = 1,
        .ports = 1,
        .inline_max = 256,
        .message_max = 1u << 30,
        .mtu = IBV_MTU_4096,
        .max_cqe = 1 << 20,
        .max_srq_wr = 1 << 15,
        .max_qp_wr = 4096,
    };
    for (int i = 0; i < FAKE_DEVICES_MAX; i++) {
        snprintf(devices[i].name, sizeof(devices[i].name), "fake%d", i);
        for (int port = 1; port <= FAKE_PORTS_MAX; port++)
            reset_gids(i, port);
        if (!shared[i].base.device)
            context_init(&shared[i], &devices[i]);
    }
    memset(contexts, 0, sizeof(contexts));
    memset(down, 0, sizeof(down));
    mistakes = live = 0;
    fake_memory_reset();
    fake_queues_reset();
    fake_rdmacm_reset();
    fake_unlock();
    return &fake_opts;
}

void fake_verbs_port(int device, int port, bool up)
{
    struct ibv_async_event event = {.element.port_num = port};

    event.event_type = up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR;
    fake_lock();
    down[device][port - 1] = !up;
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

int fake_verbs_mistakes(void)
{
    fake_lock();
    int n = mistakes;
    fake_unlock();
    return n;
}

int fake_verbs_live(void)
{
    fake_lock();
    int n = live;
    fake_unlock();
    return n;
}
