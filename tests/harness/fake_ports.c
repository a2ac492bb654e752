/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The devices and ports of all hosts: options, GIDs, LIDs and allocated resources.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/harness/fake_hub.h"

enum { SPEED_25G = 32, WIDTH_4X = 2 };

void fake_set_gid(struct fake_port *at, int port, int n, const char *address,
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

static void set_port(struct fake_port *at, int host, int device, int port)
{
    uint8_t ip[4];
    char address[32];

    at->is_set = true;
    at->opts = (struct fake_port_opts){
        .active_speed = SPEED_25G, .active_width = WIDTH_4X, .pkeys = {0xffff}};
    fake_place_address((struct fake_place){host, device, (uint8_t)port}, ip);
    for (int i = 0; i < 4; i++) {
        if (i < 2)
            snprintf(address, sizeof(address), "fe80::%d:%d:%d", host, port,
                     device + 1);
        else
            snprintf(address, sizeof(address), "10.%d.%d.%d", ip[1], ip[2], ip[3]);
        fake_set_gid(at, port, i, address,
                     i % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1);
    }
}

struct fake_port *fake_port(int host, int device, int port)
{
    struct fake_port *at = &fake_hub->ports[host][device][port - 1];

    if (!at->is_set)
        set_port(at, host, device, port);
    return at;
}

struct fake_device *fake_device(int host, int device)
{
    struct fake_device *at = &fake_hub->devices[host][device];

    if (!at->is_set) {
        at->is_set = true;
        at->opts.numa_node = -1;
        snprintf(at->opts.name, sizeof(at->opts.name), "fake%d", device);
        snprintf(at->opts.pci, sizeof(at->opts.pci), "0000:%02x:00.0", 16 + device);
    }
    return at;
}

struct fake_qp *fake_qp_row(uint32_t qp_num)
{
    return &fake_hub->qps[qp_num % FAKE_QPS_MAX];
}

struct fake_port *fake_port_of(uint32_t qp_num)
{
    const struct fake_qp *at = fake_qp_row(qp_num);

    return at->port ? fake_port(at->host, at->device, at->port) : NULL;
}

/* Limits --------------------------------------------------------------------------- */

static void add(struct fake_usage *to, struct fake_usage n, int sign)
{
    to->contexts += sign * n.contexts;
    to->qps += sign * n.qps;
    to->pinned += (uint64_t)sign * n.pinned;
}

static bool within(uint64_t used, uint64_t more, uint64_t limit)
{
    return more == 0 || limit == 0 || used + more <= limit;
}

bool fake_use(const struct ibv_context *context, struct fake_usage more)
{
    const int device = fake_device_of(context);
    struct fake_usage *used = &fake_device(fake_host_of(context), device)->used;

    if (!within((uint64_t)used->contexts, (uint64_t)more.contexts,
                (uint64_t)fake_opts.max_contexts) ||
        !within((uint64_t)used->qps, (uint64_t)more.qps, (uint64_t)fake_opts.max_qp) ||
        !within(used->pinned, more.pinned, fake_opts.max_pinned)) {
        errno = ENOMEM;
        return false;
    }
    add(used, more, 1);
    add(&fake_hub->processes[fake_self()].used[device], more, 1);
    return true;
}

void fake_unuse(const struct ibv_context *context, struct fake_usage less)
{
    const int device = fake_device_of(context);

    add(&fake_device(fake_host_of(context), device)->used, less, -1);
    add(&fake_hub->processes[fake_self()].used[device], less, -1);
}

void fake_unuse_all(struct fake_process *ended)
{
    for (int device = 0; device < FAKE_DEVICES_MAX; device++) {
        add(&fake_device(ended->host, device)->used, ended->used[device], -1);
        ended->used[device] = (struct fake_usage){0};
    }
}

/* Paths ---------------------------------------------------------------------------- */

uint16_t fake_lid(int device, int port)
{
    return (uint16_t)(fake_opts.lid
                          ? fake_opts.lid + device + (port - 1) * FAKE_PORT_LIDS
                          : 0);
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
    const struct ibv_gid_entry *own = &fake_context_port(context, path->port_num)
                                           ->gids[path->grh.sgid_index % FAKE_GIDS];
    for (int host = 0; host < fake_opts.hosts; host++)
        for (int device = 0; device < fake_opts.devices; device++)
            for (int port = 1; port <= fake_opts.ports; port++)
                right |= path->is_global ? has_gid(fake_port(host, device, port), own,
                                                   &path->grh.dgid)
                                         : path->dlid == fake_lid(device, port);
    return right;
}

/* Interface of tests --------------------------------------------------------------- */

void fake_verbs_gid(int device, int n, const char *address, enum ibv_gid_type type)
{
    fake_lock();
    fake_set_gid(fake_port(fake_host(), device, 1), 1, n, address, type);
    fake_unlock();
}

struct fake_device_opts *fake_verbs_device_opts(int host, int device)
{
    fake_lock();
    struct fake_device *at = fake_device(host, device);
    fake_unlock();
    return &at->opts;
}

struct fake_port_opts *fake_verbs_port_opts(int host, int device, int port)
{
    fake_lock();
    struct fake_port *at = fake_port(host, device, port);
    fake_unlock();
    return &at->opts;
}

static const char *const counter_names[FAKE_COUNTERS] = {
    "port_xmit_data",
    "port_rcv_data",
    "port_xmit_packets",
    "port_rcv_packets",
    "link_downed",
    "out_of_sequence",
    "packet_seq_err",
    "local_ack_timeout_err",
    "out_of_buffer",
    "rnr_nak_retry_err",
    "req_transport_retries_exceeded",
    "req_rnr_retries_exceeded",
    "rx_write_requests",
    "np_ecn_marked_roce_packets",
    "np_cnp_sent",
    "rp_cnp_handled",
};

const char *fake_verbs_counter_name(enum fake_counter counter)
{
    return counter_names[counter];
}

uint64_t fake_verbs_counter(int host, int device, int port, enum fake_counter counter)
{
    fake_lock();
    const uint64_t n = fake_port(host, device, port)->counters[counter];
    fake_unlock();
    return n;
}

bool fake_verbs_qp(int n, struct fake_qp *out)
{
    fake_lock();
    const uint32_t number = FAKE_FIRST_QP + (uint32_t)n;
    const bool is_there = number < fake_hub->next_qp_num;
    if (is_there)
        *out = *fake_qp_row(number);
    fake_unlock();
    return is_there;
}
