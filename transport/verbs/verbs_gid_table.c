/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: GIDs of the local port. GIDs change with the addresses of the network devices,
 * so they are read for each connection instead of tracking events.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "transport/verbs/verbs.h"

static_assert((int)VERBS_GID_IB == IBV_GID_TYPE_IB &&
                  (int)VERBS_GID_ROCE_V1 == IBV_GID_TYPE_ROCE_V1 &&
                  (int)VERBS_GID_ROCE_V2 == IBV_GID_TYPE_ROCE_V2,
              "as the verbs number them");
static_assert((int)VERBS_INFINIBAND == IBV_LINK_LAYER_INFINIBAND &&
                  (int)VERBS_ETHERNET == IBV_LINK_LAYER_ETHERNET,
              "as the verbs number them");

enum {
    INDEX_MAX = 255, /* limit of a GID index in a QP */
    ENTRIES_MAX = 1 << 16, /* limit over all ports */
};

static int count_ones(const uint8_t *bytes, int n)
{
    int ones = 0;

    while (ones < 8 * n && bytes[ones / 8] & 0x80 >> ones % 8)
        ones++;
    return ones;
}

/* Convert an address to a GID. Return the prefix length, or 0 if it is no IP
 * address. */
static int as_gid(const struct ifaddrs *i, uint8_t out[16])
{
    if (!i->ifa_addr || !i->ifa_netmask)
        return 0;
    const struct sockaddr_in *four = (void *)i->ifa_netmask;
    const struct sockaddr_in6 *six = (void *)i->ifa_netmask;
    bool is_four = i->ifa_addr->sa_family == AF_INET;
    if (!is_four && i->ifa_addr->sa_family != AF_INET6)
        return 0;
    trib_net_ip(i->ifa_addr, out);
    return is_four ? 96 + count_ones((const uint8_t *)&four->sin_addr, 4)
                   : count_ones(six->sin6_addr.s6_addr, 16);
}

static uint8_t prefix_of(const struct ifaddrs *list, const uint8_t gid[16])
{
    uint8_t address[16];

    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        int prefix = as_gid(i, address);
        if (prefix && memcmp(address, gid, sizeof(address)) == 0)
            return (uint8_t)prefix;
    }
    return 0;
}

bool trib_verbs_ip_chosen(const struct verbs *v, const uint8_t ip[16])
{
    const struct trib_net_choice *choice = &v->nets;
    struct trib_own_ip own[TRIB_OWN_IPS_MAX], other = {.prefix = 128};
    uint8_t wire[16];
    int n = choice->n ? trib_own_ips(own, TRIB_OWN_IPS_MAX) : 0;

    for (int i = 0; i < n; i++) {
        memcpy(wire, own[i].ip, sizeof(wire));
        trib_net_set_link(wire, 0);
        if (memcmp(wire, ip, sizeof(wire)) == 0 && trib_net_chosen(choice, &own[i]))
            return true;
    }
    /* The network device may be in another network namespace. */
    memcpy(other.ip, ip, sizeof(other.ip));
    return trib_net_chosen(choice, &other);
}

/* Return true if the settings allow a GID. InfiniBand's are no IP addresses. */
static bool is_chosen(const struct verbs *v, const struct verbs_gid *gid)
{
    const bool v1 = gid->type == VERBS_GID_ROCE_V1, ib = gid->type == VERBS_GID_IB;

    return (v->gid < 0 || gid->index == v->gid) &&
           (!v->roce || ib || v1 == (v->roce == 1)) &&
           (ib || trib_verbs_ip_chosen(v, gid->bytes));
}

/* If there are too many, routable GIDs come first. */
static void take_entries(const struct verbs *v, const struct ibv_gid_entry *entries,
                         ssize_t n, uint8_t port, struct verbs_gid_table *out)
{
    struct ifaddrs *list = NULL;

    (void)getifaddrs(&list);
    for (int pass = 0; pass < 2; pass++) {
        for (ssize_t i = 0; i < n && out->n < VERBS_GIDS; i++) {
            struct verbs_gid gid = {.type = (uint8_t)entries[i].gid_type,
                                    .index = (uint8_t)entries[i].gid_index};
            memcpy(gid.bytes, entries[i].gid.raw, sizeof(gid.bytes));
            if (entries[i].port_num != port || entries[i].gid_index > INDEX_MAX ||
                !trib_verbs_gid_usable(&gid, (enum verbs_layer)out->layer) ||
                trib_verbs_gid_routable(&gid) != (pass == 0) || !is_chosen(v, &gid))
                continue;
            gid.prefix = prefix_of(list, gid.bytes);
            out->gid[out->n++] = gid;
        }
    }
    if (list)
        freeifaddrs(list);
}

static int read_gids(struct verbs *v, struct ibv_context *context, uint8_t port,
                     struct verbs_gid_table *out)
{
    struct ibv_device_attr device = {.phys_port_cnt = 0};
    struct ibv_port_attr attr = {0};
    size_t most = 0;
    int error = v->api.ibv_query_device(context, &device);

    for (int i = 1; i <= device.phys_port_cnt && !error; i++) {
        error = v->api.ibv_query_port(context, (uint8_t)i, (void *)&attr);
        most += attr.gid_tbl_len > 0 ? (size_t)attr.gid_tbl_len : 0;
    }
    if (error || most == 0 || most > ENTRIES_MAX)
        return error;
    out->node = device.node_guid;
    struct ibv_gid_entry *entries = calloc(most, sizeof(*entries));
    if (!entries)
        return ENOMEM;
    ssize_t n =
        v->api._ibv_query_gid_table(context, entries, most, 0, sizeof(*entries));
    if (n > 0)
        take_entries(v, entries, n, port, out);
    free(entries);
    return n < 0 ? (int)-n : 0;
}

int trib_verbs_gid_table_read(struct verbs *v, struct ibv_context *context,
                              uint8_t port, struct verbs_gid_table *out)
{
    struct ibv_port_attr attr = {0};

    memset(out, 0, sizeof(*out));
    if (!v->api._ibv_query_gid_table)
        return ENOSYS;
    int error = v->api.ibv_query_port(context, port, (void *)&attr);
    if (error)
        return error;
    out->lid = attr.lid;
    out->layer =
        attr.link_layer == IBV_LINK_LAYER_ETHERNET ? VERBS_ETHERNET : VERBS_INFINIBAND;
    out->mtu = verbs_known_mtu(attr.active_mtu);
    out->grh = (attr.flags & IBV_QPF_GRH_REQUIRED) != 0;
    return read_gids(v, context, port, out);
}

/* Return the port of an InfiniBand network device, whose folder in /sys is `net`; 0:
 * unknown. The kernel counts ports from 0, in dev_port since 4.8 and in dev_id, which
 * is hexadecimal, before. */
static unsigned long port_of_link(const char *net)
{
    unsigned long most = 0;
    char text[32];

    if (trib_file_line(net, "/dev_port", text, sizeof(text)))
        most = strtoul(text, NULL, 10) + 1;
    if (trib_file_line(net, "/dev_id", text, sizeof(text)) &&
        strtoul(text, NULL, 16) >= most)
        most = strtoul(text, NULL, 16) + 1;
    return most;
}

/* Return true if a network device of this port is in the user's networks. */
static bool link_chosen(const struct verbs *v, const struct ibv_device *device,
                        uint8_t port)
{
    const struct trib_net_choice *choice = &v->nets;
    struct trib_own_ip own[TRIB_OWN_IPS_MAX];
    char path[PATH_MAX];
    int n = trib_own_ips(own, TRIB_OWN_IPS_MAX);

    for (int i = 0; i < n; i++) {
        int bytes = snprintf(path, sizeof(path), "%s/device/net/%s", device->ibdev_path,
                             own[i].name);
        if (bytes > 0 && (size_t)bytes < sizeof(path) && access(path, F_OK) == 0 &&
            trib_net_chosen(choice, &own[i])) {
            const unsigned long number = port_of_link(path);
            if (number == 0 || number == port)
                return true;
        }
    }
    return false;
}

bool trib_verbs_port_chosen(struct verbs *v, struct ibv_context *context, uint8_t port)
{
    struct verbs_gid_table table;

    if (v->gid < 0 && !v->roce && !v->nets.n)
        return true;
    if (trib_verbs_gid_table_read(v, context, port, &table) != 0)
        return true; /* the addresses of librdmacm tell */
    return table.layer == VERBS_ETHERNET || v->gid >= 0
               ? table.n > 0
               : !v->nets.n || link_chosen(v, context->device, port);
}

void trib_verbs_set_choice(struct verbs *v, const struct verbs_params *s)
{
    v->local.ways = s->ways;
    v->nets = s->all_devices ? (struct trib_net_choice){.n = 0} : s->ways.choice;
    v->gid = (int)s->gid;
    v->roce = (int)s->roce;
}
