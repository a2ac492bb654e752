/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: choice of the device, and the objects on it that all peers share.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/verbs_speed.h"

enum {
    ADDRESSES_MAX = 64, /* addresses of this host to check */
    CQ_MAX = 65536, /* entries; 4 MiB on most devices */
    DEPTH_MIN = 16,
    LINK_RECEIVES_MIN = 16, /* of an inlet without an SRQ */
    LINK_RECEIVES_MAX = 1024,
    INLET_ENTRIES = 4, /* completions of an inlet's own sends */
    SIGNAL_EVERY = 32,
};

/* iWARP providers refuse a write with immediate when it is posted; no capability bit
 * shows that. */
const char *trib_verbs_missing_feature(const struct ibv_device *device)
{
    return device->transport_type == IBV_TRANSPORT_IWARP
               ? "is an iWARP device, which cannot write with an immediate"
               : NULL;
}

/* Return true if an errno means that the device or driver does not know a verb. */
static bool is_unknown(int error)
{
    return error == EOPNOTSUPP || error == ENOSYS || error == EPROTONOSUPPORT;
}

static trib_status_t fail_unfit(struct verbs *v, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Fail because the device lacks a required feature. */
static trib_status_t fail_unfit(struct verbs *v, const char *fmt, ...)
{
    char text[200];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    v->unfit = true;
    return trib_fail(v->err, TRIB_ERR_UNSUPPORTED, "verbs: %s %s", v->device, text);
}

/* The device port that has an address of this host. */
struct place {
    char device[IBV_SYSFS_NAME_MAX];
    uint8_t port;
    bool active;
    uint8_t layer;
    uint32_t message_max;
    uint32_t mbps; /* 0: unknown */
    const char *lacks; /* NULL: no missing feature */
};

char *trib_verbs_port_text(const struct verbs_port *port, char text[VERBS_PORT_TEXT])
{
    if (port->number)
        snprintf(text, VERBS_PORT_TEXT, "%s:%u", port->device, port->number);
    else
        snprintf(text, VERBS_PORT_TEXT, "%s", port->device);
    return text;
}

bool trib_verbs_is_own(const struct verbs *v, const struct rdma_cm_id *id)
{
    return id->verbs && strcmp(id->verbs->device->name, v->device) == 0 &&
           (!v->one_port || id->port_num == v->port_num);
}

static bool probe_address(struct verbs *v, const struct verbs_ip *ip, struct place *out)
{
    struct sockaddr_storage address;
    struct ibv_port_attr port = {0};
    struct rdma_cm_id *id;

    if (v->api.rdma_create_id(v->events, &id, NULL, RDMA_PS_TCP) != 0)
        return false;
    verbs_ip_socket(ip, 0, &address);
    bool found =
        v->api.rdma_bind_addr(id, (struct sockaddr *)&address) == 0 && id->verbs;
    if (found) {
        snprintf(out->device, sizeof(out->device), "%s", id->verbs->device->name);
        out->port = id->port_num;
        out->lacks = trib_verbs_missing_feature(id->verbs->device);
        found = v->api.ibv_query_port(id->verbs, id->port_num, (void *)&port) == 0;
        out->active = port.state == IBV_PORT_ACTIVE;
        out->layer = port.link_layer;
        out->message_max = port.max_msg_sz;
        out->mbps = trib_verbs_port_mbps(id->verbs->device, id->port_num, &port);
    }
    v->api.rdma_destroy_id(id);
    return found;
}

static void use_port(struct verbs *v, const struct place *place)
{
    assert(!v->context);
    memcpy(v->device, place->device, sizeof(v->device));
    v->port_num = place->port;
    v->layer = place->layer;
    v->mbps = place->mbps;
    v->piece_shift = 0;
    while (v->piece_shift < VERBS_PIECE_SHIFT_MAX &&
           (UINT64_C(2) << v->piece_shift) <= place->message_max)
        v->piece_shift++;
}

/* Choose the first address on an active port, then all others of the same device, or of
 * the same port if one is wanted. */
static void choose_addresses(struct verbs *v, const struct verbs_port *wanted,
                             const char *names)
{
    char text[VERBS_PORT_TEXT];
    struct verbs_ip all[ADDRESSES_MAX];
    int n = v->api.own_addresses((uint8_t(*)[16])all, ADDRESSES_MAX);
    char idle[IBV_SYSFS_NAME_MAX + 16] = "", lacks[160] = "";
    bool any = false;

    for (int i = 0; i < n && v->n_ips < VERBS_ADDRESSES; i++) {
        struct place place;
        if (!trib_verbs_ip_chosen(v, all[i].bytes)) {
            any = true;
            continue;
        }
        if (!probe_address(v, &all[i], &place) ||
            (*wanted->device && strcmp(wanted->device, place.device) != 0) ||
            (wanted->number && wanted->number != place.port))
            continue;
        if (place.lacks) {
            snprintf(lacks, sizeof(lacks), "%s %s", place.device, place.lacks);
            continue;
        }
        if (!place.active) {
            snprintf(idle, sizeof(idle), "port %u of %s", place.port, place.device);
            continue;
        }
        if (v->n_ips == 0)
            use_port(v, &place);
        if (strcmp(v->device, place.device) == 0)
            v->ip[v->n_ips++] = all[i];
    }
    if (v->n_ips == 0 && *idle)
        snprintf(v->no_rdmacm, sizeof(v->no_rdmacm),
                 "%s is not active: check its cable and ibv_devinfo", idle);
    else if (v->n_ips == 0 && *lacks)
        snprintf(v->no_rdmacm, sizeof(v->no_rdmacm), "%s", lacks);
    else if (v->n_ips == 0 && any)
        snprintf(v->no_rdmacm, sizeof(v->no_rdmacm),
                 "no IP address of the RDMA device %s is in net=%.80s",
                 *wanted->device ? trib_verbs_port_text(wanted, text) : names,
                 v->nets.text);
    else if (v->n_ips == 0)
        snprintf(v->no_rdmacm, sizeof(v->no_rdmacm),
                 "the RDMA device %s has no IP address: assign one to its network "
                 "interface (rdma link shows which one)",
                 *wanted->device ? trib_verbs_port_text(wanted, text) : names);
}

/* Choose a device through librdmacm. If there is none, v->no_rdmacm receives the
 * reason. */
static void choose_by_rdmacm(struct verbs *v, const struct verbs_port *wanted,
                             const char *names)
{
    if (v->connect == VERBS_BY_GID) {
        snprintf(v->no_rdmacm, sizeof(v->no_rdmacm), "verbs:connect=gid is set");
        return;
    }
    if (*v->api.no_rdmacm) {
        snprintf(v->no_rdmacm, sizeof(v->no_rdmacm), "%s (Debian: librdmacm1)",
                 v->api.no_rdmacm);
        return;
    }
    v->events = v->api.rdma_create_event_channel();
    if (v->events)
        choose_addresses(v, wanted, names);
    else
        snprintf(v->no_rdmacm, sizeof(v->no_rdmacm),
                 "librdmacm cannot be used: %m; load the module rdma_ucm and check the "
                 "permissions in /dev/infiniband");
}

bool trib_verbs_has_manager(struct verbs *v)
{
    const struct verbs_port any = {.number = 0};

    choose_by_rdmacm(v, &any, "");
    if (v->events)
        v->api.rdma_destroy_event_channel(v->events);
    return !*v->no_rdmacm;
}

static void use_adapter(struct verbs *v, struct verbs_adapter *a)
{
    v->adapter = a;
    v->context = a ? a->ibv : NULL;
}

/* Choose the first active port with readable GIDs, or only port `number`. On success
 * the device stays open. */
static bool try_device(struct verbs *v, struct ibv_device *device, int number,
                       char *why, size_t bytes)
{
    struct verbs_adapter *a = trib_verbs_adapter_open(&v->api, device);
    struct ibv_device_attr attr;

    assert(!v->context);
    if (!a) {
        snprintf(why, bytes, "%s cannot be opened: %m%s", device->name,
                 trib_verbs_errno_cure(errno));
        return false;
    }
    int error = v->api.ibv_query_device(a->ibv, &attr);
    for (int i = 1; !error && i <= attr.phys_port_cnt && !v->context; i++) {
        struct place place = {.port = (uint8_t)i};
        struct ibv_port_attr port = {0};
        struct verbs_gid_table table;
        if (number && i != number)
            continue;
        error = v->api.ibv_query_port(a->ibv, place.port, (void *)&port);
        if (!error && port.state != IBV_PORT_ACTIVE) {
            snprintf(why, bytes,
                     "port %d of %s is not active: check its cable and ibv_devinfo", i,
                     device->name);
            continue;
        }
        if (!error)
            error = trib_verbs_gid_table_read(v, a->ibv, place.port, &table);
        if (error)
            break;
        if (table.n == 0 && !table.lid) {
            snprintf(why, bytes, "port %d of %s has no GID that peers can reach", i,
                     device->name);
            continue;
        }
        snprintf(place.device, sizeof(place.device), "%s", device->name);
        place.layer = table.layer;
        place.message_max = port.max_msg_sz;
        place.mbps = trib_verbs_port_mbps(device, place.port, &port);
        use_port(v, &place);
        use_adapter(v, a);
    }
    if (error)
        snprintf(why, bytes, "the GIDs of %s cannot be read: %s", device->name,
                 error == ENOSYS ? "libibverbs is older than rdma-core 33"
                                 : strerror(error));
    if (!v->context)
        trib_verbs_adapter_close(a);
    return v->context != NULL;
}

/* Choose a port without librdmacm. */
static trib_status_t choose_port(struct verbs *v, const struct verbs_port *wanted,
                                 struct ibv_device **list)
{
    char why[200] = "";
    bool lacking = false;

    for (int i = 0; list[i] && !v->context; i++) {
        const char *lacks = trib_verbs_missing_feature(list[i]);
        if (*wanted->device && strcmp(wanted->device, list[i]->name) != 0)
            continue;
        lacking = lacking || lacks;
        if (lacks)
            snprintf(why, sizeof(why), "%s %s", list[i]->name, lacks);
        else
            (void)try_device(v, list[i], wanted->number, why, sizeof(why));
    }
    if (v->context)
        return TRIB_OK;
    v->unfit = lacking;
    bool twice = strcmp(why, v->no_rdmacm) == 0;
    return trib_fail(v->err, TRIB_ERR_UNSUPPORTED, "verbs: %s%s%s", v->no_rdmacm,
                     twice ? "" : "; by GIDs: ", twice ? "" : why);
}

static trib_status_t open_chosen(struct verbs *v, struct ibv_device **list)
{
    for (int i = 0; list[i] && !v->context; i++) {
        if (strcmp(v->device, list[i]->name) == 0)
            use_adapter(v, trib_verbs_adapter_open(&v->api, list[i]));
    }
    return v->context
               ? TRIB_OK
               : trib_fail(v->err, TRIB_ERR_SYSTEM, "verbs: %s cannot be opened: %m%s",
                           v->device, trib_verbs_errno_cure(errno));
}

/* Return the number of ports of a device, or 0 if the device cannot be opened. */
static int count_ports(const struct trib_verbs_api *api, struct ibv_device *device)
{
    struct verbs_adapter *a = trib_verbs_adapter_open(api, device);
    struct ibv_device_attr attr;

    if (!a)
        return 0;
    int n = api->ibv_query_device(a->ibv, &attr) == 0 ? attr.phys_port_cnt : 0;
    trib_verbs_adapter_close(a);
    return n;
}

static trib_status_t check_port(struct verbs *v, const struct verbs_port *wanted,
                                struct ibv_device *device)
{
    char text[VERBS_PORT_TEXT];

    if (!wanted->number)
        return TRIB_OK;
    int n = count_ports(&v->api, device);
    if (n >= wanted->number || n == 0) /* 0: opening the device will fail and report
                                        * why */
        return TRIB_OK;
    return trib_fail(v->err, TRIB_ERR_CONFIG, "verbs:device=%s: %s has %d port%s",
                     trib_verbs_port_text(wanted, text), wanted->device, n,
                     n == 1 ? "" : "s");
}

/* Return true if none of the wanted devices can be opened. librdmacm does not tell: it
 * then behaves as if they had no address. */
static bool cannot_open(struct verbs *v, const struct verbs_port *wanted,
                        struct ibv_device **list, char *why, size_t bytes)
{
    *why = '\0';
    for (int i = 0; list[i]; i++) {
        if (*wanted->device && strcmp(wanted->device, list[i]->name) != 0)
            continue;
        struct verbs_adapter *a = trib_verbs_adapter_open(&v->api, list[i]);
        if (a) {
            trib_verbs_adapter_close(a);
            return false;
        }
        snprintf(why, bytes, "%s cannot be opened: %m%s", list[i]->name,
                 trib_verbs_errno_cure(errno));
    }
    return *why != '\0';
}

static trib_status_t choose_from(struct verbs *v, const struct verbs_port *wanted,
                                 struct ibv_device **list)
{
    struct ibv_device *there = NULL;
    char names[128] = "", why[300];

    for (int i = 0; list[i]; i++) {
        size_t len = strlen(names);
        snprintf(names + len, sizeof(names) - len, "%s%s", len ? ", " : "",
                 list[i]->name);
        if (strcmp(wanted->device, list[i]->name) == 0)
            there = list[i];
    }
    if (*wanted->device && !there)
        return trib_fail(v->err, TRIB_ERR_CONFIG,
                         "verbs: there is no RDMA device \"%s\"; this host has %s",
                         wanted->device, names);
    trib_status_t status = there ? check_port(v, wanted, there) : TRIB_OK;
    if (status != TRIB_OK)
        return status;
    choose_by_rdmacm(v, wanted, names);
    if (!*v->no_rdmacm)
        return open_chosen(v, list);
    if (cannot_open(v, wanted, list, why, sizeof(why)))
        return trib_fail(v->err, TRIB_ERR_UNSUPPORTED, "verbs: %s", why);
    if (v->connect == VERBS_BY_RDMACM && there)
        v->unfit = trib_verbs_missing_feature(there) != NULL;
    if (v->connect == VERBS_BY_RDMACM)
        return trib_fail(v->err, TRIB_ERR_UNSUPPORTED, "verbs: %s", v->no_rdmacm);
    return choose_port(v, wanted, list);
}

trib_status_t trib_verbs_choose(struct verbs *v, const struct verbs_port *wanted)
{
    struct verbs_port chosen = {.number = wanted->number};
    struct ibv_device **list = v->api.ibv_get_device_list(NULL);
    trib_status_t status = TRIB_OK;

    if (!list || !list[0])
        status = trib_verbs_no_device(v);
    else
        status = choose_from(v, wanted, list);
    v->one_port = wanted->number != 0;
    memcpy(chosen.device, v->device, sizeof(chosen.device));
    trib_verbs_port_text(&chosen, v->label);
    if (list)
        v->api.ibv_free_device_list(list);
    return status;
}

/* Set the receives of each inlet without an SRQ. */
static void share_receives(struct verbs *v, const struct ibv_device_attr *attr,
                           uint32_t others)
{
    uint32_t share = v->receives / others;

    share = share < LINK_RECEIVES_MAX ? share : LINK_RECEIVES_MAX;
    share = share > LINK_RECEIVES_MIN ? share : LINK_RECEIVES_MIN;
    v->link_receives =
        share < (uint32_t)attr->max_qp_wr ? share : (uint32_t)attr->max_qp_wr;
}

/* Return the entries that the completion queue needs. */
static uint64_t count_entries(const struct verbs *v, uint64_t others)
{
    const uint64_t sends = others * (v->depth + INLET_ENTRIES);

    if (v->srq)
        return v->receives + sends;
    /* The receives of a request that its peer has given up are flushed, too. */
    return sends + others * (v->link_receives + VERBS_OUTLET_RECEIVES) +
           v->link_receives;
}

static trib_status_t choose_sizes(struct verbs *v, const struct ibv_device_attr *attr,
                                  uint32_t *entries_out)
{
    const uint32_t others = v->size > 1 ? (uint32_t)v->size - 1 : 1;
    const uint64_t most = attr->max_cqe < CQ_MAX ? (uint64_t)attr->max_cqe : CQ_MAX;

    assert((v->depth & (v->depth - 1)) == 0);
    share_receives(v, attr, others);
    while (v->depth > DEPTH_MIN &&
           (v->depth > (uint32_t)attr->max_qp_wr || count_entries(v, others) > most))
        v->depth /= 2;
    const uint64_t entries = count_entries(v, others);
    if (entries > (uint64_t)attr->max_cqe)
        return trib_fail(
            v->err, TRIB_ERR_UNSUPPORTED,
            "verbs: %d ranks need a completion queue of %lu entries, but %s supports "
            "at most %d: use another transport",
            v->size, (unsigned long)entries, v->device, attr->max_cqe);
    /* A full send queue always holds a signalled request, so it drains. */
    if (v->depth > (uint32_t)attr->max_qp_wr)
        return fail_unfit(v, "supports %d requests per connection, but %d are needed",
                          attr->max_qp_wr, DEPTH_MIN);
    v->signal_every = v->depth / 4 < SIGNAL_EVERY ? v->depth / 4 : SIGNAL_EVERY;
    *entries_out = (uint32_t)entries;
    return TRIB_OK;
}

static trib_status_t no_queue(struct verbs *v, const char *what, uint32_t entries)
{
    return trib_fail(v->err, errno == ENOMEM ? TRIB_ERR_NO_MEMORY : TRIB_ERR_SYSTEM,
                     "verbs: cannot create a %s of %u entries on %s: %m%s", what,
                     entries, v->device, trib_verbs_errno_cure(errno));
}

/* Check now; otherwise the first connection would fail in the middle of an
 * operation. */
static trib_status_t try_queue_pair(struct verbs *v)
{
    const int error = trib_verbs_try_queue_pair(v);

    if (!error)
        return TRIB_OK;
    if (is_unknown(error) || error == EINVAL)
        return fail_unfit(
            v, "does not support reliable connections (RC) with remote writes");
    errno = error;
    return no_queue(v, "queue pair", v->depth);
}

/* Return the interrupt vector of this rank's completions. Ranks of a host differ,
 * whether their numbers are consecutive or differ by the number of hosts. */
static int completion_vector(const struct verbs *v)
{
    const int n = v->context->num_comp_vectors;

    return n > 0 ? (v->self + v->self / n) % n : 0;
}

static trib_status_t make_domain(struct verbs *v)
{
    v->domain = trib_verbs_domain_open(v->adapter, &v->trust);
    v->pd = v->domain ? v->domain->pd : NULL;
    v->channel = v->pd ? v->api.ibv_create_comp_channel(v->context) : NULL;
    if (!v->channel || fcntl(v->channel->fd, F_SETFL, O_NONBLOCK) != 0)
        return trib_fail(v->err, TRIB_ERR_SYSTEM,
                         "verbs: cannot create a protection domain or completion "
                         "channel on %s: %m",
                         v->device);
    struct epoll_event readable = {.events = EPOLLIN, .data.fd = v->channel->fd};
    if (epoll_ctl(v->epoll, EPOLL_CTL_ADD, v->channel->fd, &readable) != 0)
        return trib_fail(v->err, TRIB_ERR_SYSTEM, "verbs: epoll: %m");
    return TRIB_OK;
}

/* Without SRQs each connection gets a share of the receives. */
static trib_status_t make_srq(struct verbs *v, const struct ibv_device_attr *attr)
{
    if (attr->max_srq_wr > 0) {
        if (v->receives > (uint32_t)attr->max_srq_wr)
            v->receives = (uint32_t)attr->max_srq_wr;
        struct ibv_srq_init_attr init = {.attr = {.max_wr = v->receives, .max_sge = 1}};
        v->srq = v->api.ibv_create_srq(v->pd, &init);
        if (v->srq)
            return TRIB_OK;
        if (!is_unknown(errno))
            return no_queue(v, "shared receive queue", v->receives);
    }
    v->owing = calloc((size_t)v->size, sizeof(*v->owing));
    if (!v->owing)
        return trib_fail(v->err, TRIB_ERR_NO_MEMORY, "out of memory");
    trib_log(v->log, TRIB_LOG_INFO, "verbs",
             "%s has no shared receive queues: each connection has its own receives",
             v->device);
    return TRIB_OK;
}

trib_status_t trib_verbs_make_queues(struct verbs *v)
{
    struct ibv_device_attr attr;
    uint32_t entries = 0;

    assert(v->context && !v->cq);
    if (v->api.ibv_query_device(v->context, &attr) != 0)
        return trib_fail(v->err, TRIB_ERR_SYSTEM, "verbs: cannot query %s: %m",
                         v->device);
    trib_status_t status = make_domain(v);
    if (status == TRIB_OK)
        status = make_srq(v, &attr);
    if (status == TRIB_OK)
        status = choose_sizes(v, &attr, &entries);
    if (status != TRIB_OK)
        return status;
    v->cq = v->api.ibv_create_cq(v->context, (int)entries, NULL, v->channel,
                                 completion_vector(v));
    if (!v->cq)
        return no_queue(v, "completion queue", entries);
    status = try_queue_pair(v);
    if (status != TRIB_OK)
        return status;
    v->deferred_max = entries;
    v->owed = v->srq ? v->receives : 0;
    return trib_verbs_post_receives(v);
}

void trib_verbs_free_queues(struct verbs *v)
{
    uint32_t unacked = atomic_load_explicit(&v->unacked, memory_order_relaxed);

    if (v->cq && unacked) /* destroying the CQ would block on them */
        v->api.ibv_ack_cq_events(v->cq, unacked);
    if (v->srq)
        (void)v->api.ibv_destroy_srq(v->srq);
    if (v->cq)
        (void)v->api.ibv_destroy_cq(v->cq);
    if (v->channel)
        (void)v->api.ibv_destroy_comp_channel(v->channel);
    if (v->domain)
        trib_verbs_domain_close(v->adapter, v->domain);
    if (v->adapter)
        trib_verbs_adapter_close(v->adapter);
    if (v->events)
        v->api.rdma_destroy_event_channel(v->events);
}
