/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: one transport per port of this host's devices, and rails over them.
 *
 * A host with one active port has no rails, but its peers may have. Each end then tries
 * which of the peer's devices it can reach; those in its own networks come first.
 */
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/config.h"
#include "base/digest.h"
#include "base/error.h"
#include "transport/multirail/multirail.h"
#include "transport/verbs/verbs.h"

enum { DEVICES_MAX = 32 };

struct devices {
    const struct verbs_params *params;
    struct multirail_plan plan;
    int n;
    struct verbs_port at[MULTIRAIL_MAX];
};

/* Parse "NAME" or "NAME:PORT". */
static bool read_port(const char *text, size_t len, struct verbs_port *out)
{
    const char *colon = memchr(text, ':', len);
    size_t name = colon ? (size_t)(colon - text) : len;
    int number = 0;

    if (name == 0 || name >= sizeof(out->device))
        return false;
    for (size_t i = name + 1; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || number > UINT8_MAX)
            return false;
        number = 10 * number + text[i] - '0';
    }
    if (colon && (number < 1 || number > UINT8_MAX))
        return false;
    *out = (struct verbs_port){.number = (uint8_t)number};
    memcpy(out->device, text, name);
    return true;
}

/* Check that the last port of the list is not listed before. A name without a port
 * matches any port. */
static trib_status_t check_last(const struct devices *d, struct trib_error *err)
{
    const struct verbs_port *last = &d->at[d->n - 1];
    char one[VERBS_PORT_TEXT], two[VERBS_PORT_TEXT];

    for (int i = 0; i + 1 < d->n; i++) {
        const struct verbs_port *p = &d->at[i];
        if (strcmp(p->device, last->device) != 0 ||
            (p->number && last->number && p->number != last->number))
            continue;
        trib_verbs_port_text(p, one);
        trib_verbs_port_text(last, two);
        if (p->number != last->number)
            return trib_fail(err, TRIB_ERR_CONFIG,
                             "verbs:device= lists %s and %s, which may be one port: "
                             "name the ports, as in %s:1,%s:2",
                             one, two, p->device, p->device);
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "verbs:device= lists %s twice: each port is one rail", one);
    }
    return TRIB_OK;
}

/* Read the list of named devices, in their order. */
static trib_status_t read_list(const char *text, struct devices *d,
                               struct trib_error *err)
{
    const char *all = text;
    trib_status_t status = TRIB_OK;

    while (*text && status == TRIB_OK) {
        size_t len = strcspn(text, ",");
        if (d->n == MULTIRAIL_MAX)
            return trib_fail(err, TRIB_ERR_CONFIG,
                             "verbs:device=%.100s: at most %d devices or ports", all,
                             MULTIRAIL_MAX);
        if (!read_port(text, len, &d->at[d->n]))
            return trib_fail(
                err, TRIB_ERR_CONFIG,
                "verbs:device=%.*s is neither a device nor a port, such as mlx5_0 or "
                "mlx5_0:1",
                (int)(len < 100 ? len : 100), text);
        d->n++;
        status = check_last(d, err);
        text += len + (text[len] == ',');
    }
    return status;
}

/* Find the active ports, if there are several. The first port of each device comes
 * first, because ports of one device share its memory bandwidth. A device with one
 * active port is listed without a port number. */
static void find_ports(struct devices *d, int max)
{
    uint32_t active[DEVICES_MAX] = {0};
    struct trib_verbs_api api;
    char why[200];
    int n = 0;

    if (!trib_verbs_present() || !trib_verbs_load(&api, why, sizeof(why)))
        return; /* opening a device reports the reason */
    struct ibv_device **list = api.ibv_get_device_list(&n);
    n = n < DEVICES_MAX ? n : DEVICES_MAX;
    for (int i = 0; list && i < n; i++)
        (void)trib_verbs_count_ports(&api, list[i], &active[i]);
    for (int nth = 0; list && nth < MULTIRAIL_MAX; nth++) {
        for (int i = 0; i < n && d->n < max; i++) {
            bool only = nth == 0 && __builtin_popcount(active[i]) == 1;
            if (!active[i])
                continue;
            struct verbs_port *at = &d->at[d->n++];
            at->number = only ? 0 : (uint8_t)__builtin_ctz(active[i]);
            snprintf(at->device, sizeof(at->device), "%s", list[i]->name);
            active[i] &= active[i] - 1;
        }
    }
    if (list)
        api.ibv_free_device_list(list);
}

/* Get the netmask of an interface that has address `ip`. Return false if it has another
 * one. */
static bool mask_of(const struct ifaddrs *i, const struct verbs_ip *ip,
                    uint8_t mask[16])
{
    bool v4 = trib_net_is_v4(ip->bytes);
    struct verbs_ip own;

    if (!trib_net_usable(i, v4 ? AF_INET : AF_INET6, own.bytes) || !i->ifa_netmask ||
        memcmp(&own, ip, sizeof(own)) != 0)
        return false;
    memset(mask, 0xff, 16);
    if (v4)
        memcpy(mask + 12, &((struct sockaddr_in *)(void *)i->ifa_netmask)->sin_addr, 4);
    else
        memcpy(mask, &((struct sockaddr_in6 *)(void *)i->ifa_netmask)->sin6_addr, 16);
    return true;
}

static bool in_net(const struct verbs_ip *ip, const struct verbs_ip *net,
                   const uint8_t mask[16])
{
    for (int k = 0; k < 16; k++) {
        if ((ip->bytes[k] ^ net->bytes[k]) & mask[k])
            return false;
    }
    return true;
}

/* Return a number that identifies the subnet, or 0 if unknown. */
static uint64_t net_of(const struct verbs_ip *ip)
{
    struct ifaddrs *all = NULL;
    uint8_t mask[16], net[16];
    uint64_t number = 0;

    if (getifaddrs(&all) != 0)
        return 0;
    for (const struct ifaddrs *i = all; i && !number; i = i->ifa_next) {
        if (!mask_of(i, ip, mask))
            continue;
        for (int k = 0; k < 16; k++)
            net[k] = ip->bytes[k] & mask[k];
        number = trib_digest_seeded(net, sizeof(net), 0);
    }
    freeifaddrs(all);
    return number;
}

/* Return true if an address of the peer is in a network of this device. */
static bool shares_net(const struct verbs *v, const struct verbs_address *a)
{
    uint8_t mask[16];
    struct ifaddrs *all = NULL;
    bool shares = false;

    if (getifaddrs(&all) != 0)
        return false;
    for (int own = 0; own < v->n_ips; own++) {
        for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
            if (!mask_of(i, &v->ip[own], mask))
                continue;
            for (int k = 0; k < a->n; k++)
                shares |= in_net(&a->ip[k], &v->ip[own], mask);
        }
    }
    freeifaddrs(all);
    return shares;
}

/* The address of a rank with one device counts as position 0. */
static bool read_address(const struct trib_address *blob, int nth,
                         struct verbs_address *out)
{
    struct multirail_address head = {0};

    if (blob->len > sizeof(blob->bytes))
        return false;
    memcpy(&head, blob->bytes, sizeof(head));
    if (head.magic == MULTIRAIL_MAGIC && (uint32_t)nth >= head.n)
        return false;
    return trib_multirail_nth(blob->bytes, blob->len, sizeof(head), nth, (uint8_t *)out,
                              sizeof(*out)) == sizeof(*out) &&
           out->magic == VERBS_MAGIC && out->n + out->more <= VERBS_ADDRESSES &&
           out->piece_shift <= VERBS_PIECE_SHIFT_MAX && !(out->caps & ~VERBS_CAPS);
}

static bool same_net(struct trib_transport *inner, const struct trib_address *address)
{
    struct verbs_address a;

    return read_address(address, 0, &a) && shares_net(verbs_of(inner), &a);
}

void trib_verbs_choices(const struct verbs *v, const struct trib_address *blob,
                        struct verbs_choice *out)
{
    struct verbs_address all[MULTIRAIL_MAX];
    bool near[MULTIRAIL_MAX] = {false};
    int n = 0;

    out->n = 0;
    while (n < MULTIRAIL_MAX && read_address(blob, n, &all[n]))
        n++;
    for (int i = 0; i < n && n > 1; i++)
        near[i] = shares_net(v, &all[i]);
    for (int far = 0; far < 2; far++) {
        for (int i = 0; i < n; i++) {
            if (near[i] == (far != 0))
                continue;
            out->address[out->n] = all[i];
            out->device[out->n++] = (uint8_t)i;
        }
    }
}

static trib_status_t open_rail(void *arg, int rail,
                               const struct trib_transport_opts *opts,
                               struct trib_transport **out)
{
    struct devices *d = arg;
    trib_status_t status = trib_verbs_open_one(opts, d->params, &d->at[rail], out);

    assert(rail >= 0 && rail < d->n);
    if (status == TRIB_OK && verbs_of(*out)->n_ips)
        d->plan.net[rail] = net_of(&verbs_of(*out)->ip[0]);
    return status;
}

static trib_status_t open_several(const struct trib_transport_opts *opts,
                                  struct devices *d, struct trib_transport **out)
{
    assert(d->n > 1 && d->n <= MULTIRAIL_MAX);
    d->plan = (struct multirail_plan){
        .name = "verbs",
        .n = d->n,
        .confirms = true,
        .skips = !d->params->device[0],
        .open = open_rail,
        .arg = d,
        .same_net = same_net,
        .revive = d->params->revive,
        .reach_ms = (int)d->params->reach_ms,
    };

    for (int i = 0; i < d->n; i++) {
        char text[VERBS_PORT_TEXT];
        snprintf(d->plan.label[i], sizeof(d->plan.label[i]), "%.40s",
                 trib_verbs_port_text(&d->at[i], text));
    }
    return trib_multirail_make(opts, &d->plan, out);
}

trib_status_t trib_verbs_open_all(const struct trib_transport_opts *opts,
                                  const struct verbs_params *params,
                                  struct trib_transport **out)
{
    struct devices d = {.params = params};
    trib_status_t status = read_list(params->device, &d, opts->err);

    if (status != TRIB_OK)
        return status;
    if (d.n > params->rails)
        d.n = (int)params->rails;
    if (!params->device[0] && params->rails > 1)
        find_ports(&d, (int)params->rails);
    if (d.n > 1)
        return open_several(opts, &d, out);
    return trib_verbs_open_one(opts, params, &d.at[0], out);
}
