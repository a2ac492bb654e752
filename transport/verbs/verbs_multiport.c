/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: one transport per port of this host's devices, and rails over them.
 *
 * Several rails need several ports at both ends. If one end has one, each end connects
 * to the first device of the peer that it reaches, beginning with those in its own
 * networks. This one rail is connected again after a failure if both ends have chosen
 * the same pair of ports.
 */
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/config.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "transport/multirail/multirail.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/verbs_select.h"

struct devices {
    const struct verbs_params *params;
    struct multirail_plan plan;
    bool all; /* each device must open: the user has named it */
    int n;
    struct verbs_port at[MULTIRAIL_MAX];
};

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
    return trib_multirail_nth((struct multirail_bytes){blob->bytes, blob->len},
                              sizeof(head), nth, (uint8_t *)out,
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

/* Return a number that identifies the port's network, or 0 if unknown: by its address,
 * by its best GID, or by InfiniBand's subnet. */
static uint64_t port_net(struct verbs *v)
{
    struct verbs_gid_table table;
    const struct verbs_gid *best = NULL;
    const uint64_t number = v->n_ips ? net_of(&v->ip[0]) : 0;
    struct verbs_ip net;

    if (number)
        return number;
    if (trib_verbs_gid_table_read(v, v->context, v->port_num, &table) != 0)
        return 0;
    for (int i = 0; i < table.n; i++) {
        const struct verbs_gid *gid = &table.gid[i];
        if (trib_verbs_gid_routable(gid) &&
            (!best || (trib_net_is_v4(gid->bytes) && !trib_net_is_v4(best->bytes))))
            best = gid;
    }
    if (table.layer == VERBS_INFINIBAND)
        return table.n ? trib_digest_seeded(table.gid[0].bytes, 8, VERBS_INFINIBAND)
                       : 0;
    if (!best)
        return 0;
    trib_verbs_gid_net(best, net.bytes);
    return trib_digest_seeded(&net, sizeof(net), 0);
}

/* The other transports of "auto" add 100 bytes to a blob. Of a record after the first,
 * only the rkey differs. */
static_assert(sizeof(uint32_t) + MULTIRAIL_MAX * (sizeof(struct multirail_record) + 2) +
                      sizeof(struct verbs_export) + (MULTIRAIL_MAX - 1) * 4 + 100 <=
                  TRIB_BLOB_MAX,
              "region");

static trib_status_t open_rail(void *arg, int rail,
                               const struct trib_transport_opts *opts,
                               struct trib_transport **out)
{
    struct devices *d = arg;
    trib_status_t status = trib_verbs_open_one(opts, d->params, &d->at[rail], out);

    assert(rail >= 0 && rail < d->n);
    if (status != TRIB_OK)
        return status;
    d->plan.net[rail] = port_net(verbs_of(*out));
    d->plan.speed[rail] = verbs_of(*out)->mbps;
    return TRIB_OK;
}

/* Let `qps` rails use each port, as far as there are rails. */
static void add_paths(struct devices *d, const struct trib_log *log)
{
    const int ports = d->n ? d->n : 1;
    int qps = (int)d->params->qps;

    while (qps > 1 && ports * qps > MULTIRAIL_MAX)
        qps--;
    if (qps < d->params->qps)
        trib_log(
            log, TRIB_LOG_INFO, "verbs",
            "qps=%d: %d ports have %d queue pairs each, because a rank has at most "
            "%d rails",
            (int)d->params->qps, ports, qps, MULTIRAIL_MAX);
    for (int i = ports * qps; qps > 1 && i-- > 0;) {
        d->at[i] = d->at[i % ports];
        d->at[i].path = (uint8_t)(i / ports);
        d->at[i].n_paths = (uint8_t)qps;
    }
    d->n = qps > 1 ? ports * qps : d->n;
}

/* One key for all rails keeps the records of their regions short. */
static trib_status_t share_key(const struct trib_transport_opts *opts,
                               struct devices *d)
{
    uint64_t key;

    if (getrandom(&key, sizeof(key), 0) != (ssize_t)sizeof(key))
        return trib_fail(opts->err, TRIB_ERR_SYSTEM, "verbs: getrandom: %m");
    for (int i = 0; i < d->n; i++)
        d->at[i].key = key;
    return TRIB_OK;
}

/* Also open a single port as a rail: rails reconnect after a failure. */
static trib_status_t open_ports(const struct trib_transport_opts *opts,
                                struct devices *d, struct trib_transport **out)
{
    assert(d->n >= 1 && d->n <= MULTIRAIL_MAX);
    if (d->n == 1 && !d->params->reconnect)
        return trib_verbs_open_one(opts, d->params, &d->at[0], out);
    d->plan = (struct multirail_plan){
        .name = "verbs",
        .n = d->n,
        .confirms = true,
        .skips = !d->all,
        .open = open_rail,
        .arg = d,
        .same_net = same_net,
        .revive = d->params->reconnect ? d->params->revive : NULL,
        .sever = d->params->reconnect ? d->params->sever : NULL,
        .bar = d->params->reconnect ? d->params->bar : NULL,
        .shorten = trib_verbs_shorten,
        .reach_ms = (int)d->params->reach_ms,
    };

    for (int i = 0; i < d->n; i++) {
        char text[VERBS_PORT_TEXT];
        (void)trib_verbs_port_text(&d->at[i], text);
        if (d->at[i].n_paths > 1)
            snprintf(d->plan.label[i], sizeof(d->plan.label[i]), "%.34s (path %d)",
                     text, d->at[i].path);
        else
            snprintf(d->plan.label[i], sizeof(d->plan.label[i]), "%.40s", text);
    }
    const trib_status_t status = share_key(opts, d);
    return status == TRIB_OK ? trib_multirail_make(opts, &d->plan, out) : status;
}

/* None of the host's ports may be used. */
static trib_status_t fail_none(const struct trib_transport_opts *opts,
                               const struct verbs_ports *ports)
{
    char text[400] = "";

    trib_verbs_skipped_text(ports, text, sizeof(text));
    if (opts->unfit_out)
        *opts->unfit_out = true;
    return trib_fail(opts->err, TRIB_ERR_UNSUPPORTED,
                     "verbs: no RDMA port of this host can be used: %s", text);
}

/* Open the first port that opens, in order of preference. */
static trib_status_t open_first(const struct trib_transport_opts *opts,
                                const struct verbs_params *params,
                                const struct verbs_ports *ports,
                                struct trib_transport **out)
{
    trib_status_t status = TRIB_ERR_UNSUPPORTED;

    assert(ports->n_taken == 1);
    for (int i = 0; i < ports->n_usable; i++) {
        struct devices d = {.params = params, .n = 1};
        d.at[0] = trib_verbs_candidate_port(&ports->of[ports->order[i]]);
        trib_error_clear(opts->err);
        status = open_ports(opts, &d, out);
        if (status == TRIB_OK)
            return TRIB_OK;
    }
    return status;
}

static trib_status_t open_chosen(const struct trib_transport_opts *opts,
                                 const struct verbs_params *params,
                                 const struct verbs_ports *ports,
                                 struct trib_transport **out)
{
    struct devices d = {.params = params};
    char skipped[400] = "";

    trib_verbs_skipped_text(ports, skipped, sizeof(skipped));
    if (skipped[0])
        trib_log(opts->log, TRIB_LOG_INFO, "verbs", "not used: %s", skipped);
    if (ports->n_taken == 1 && params->qps == 1)
        return open_first(opts, params, ports, out);
    for (int i = 0; i < ports->n_taken; i++)
        d.at[d.n++] = trib_verbs_candidate_port(&ports->of[ports->order[i]]);
    add_paths(&d, opts->log);
    return open_ports(opts, &d, out);
}

/* Open exactly the ports that the user has named. */
static trib_status_t open_named(const struct trib_transport_opts *opts,
                                const struct verbs_params *params,
                                struct trib_transport **out)
{
    struct devices d = {.params = params, .all = true};

    assert(params->list.exact && params->list.n <= MULTIRAIL_MAX);
    for (int i = 0; i < params->list.n; i++)
        d.at[d.n++] = params->list.of[i].at;
    add_paths(&d, opts->log);
    return open_ports(opts, &d, out);
}

/* Give `v` the library and the settings. Return false if the library cannot be
 * loaded. */
static bool load(const struct verbs_params *params, struct verbs *v, char why[200])
{
    *v = (struct verbs){.connect = params->connect};
    *why = '\0';
    if (!trib_verbs_present() || !trib_verbs_load(&v->api, why, 200))
        return false;
    trib_verbs_set_choice(v, params);
    return true;
}

static trib_status_t find_ports(const struct trib_transport_opts *opts,
                                const struct verbs_params *params, struct verbs *v,
                                struct verbs_ports *out)
{
    const struct verbs_wish wish = {.list = &params->list,
                                    .v = v,
                                    .rails = (int)params->rails,
                                    .place = opts->place};

    return trib_verbs_find_ports(&wish, opts->log, out, opts->err);
}

/* Return true if the user restricts the ports. */
static bool is_choosy(const struct verbs_params *s)
{
    return s->list.n || (s->ways.choice.n && !s->all_devices) || s->gid >= 0 || s->roce;
}

/* List the ports as verbs:device= accepts them, and those that are not taken. */
static void describe(const struct verbs_ports *ports, bool by_manager, int64_t cache,
                     char *text, size_t bytes)
{
    char one[VERBS_PORT_TEXT];

    for (int i = 0; i < ports->n_taken; i++) {
        const struct verbs_candidate *c = &ports->of[ports->order[i]];
        const struct verbs_port port = trib_verbs_candidate_port(c);
        trib_text_append(text, bytes, "%s%s", i ? ", " : "",
                         trib_verbs_port_text(&port, one));
        if (c->mbps)
            trib_text_append(text, bytes, " %g Gbit/s", c->mbps / 1000.0);
    }
    if (ports->n_taken)
        trib_text_append(text, bytes, " (by %s)", by_manager ? "librdmacm" : "GIDs");
    if (ports->n_taken && cache)
        trib_text_append(text, bytes, ", registration cache of %d MiB", (int)cache);
    if (ports->n_taken == ports->n)
        return;
    trib_text_append(text, bytes, "%snot used: ", *text ? "; " : "");
    trib_verbs_skipped_text(ports, text, bytes);
}

trib_status_t trib_verbs_open_all(const struct trib_transport_opts *opts,
                                  const struct verbs_params *params,
                                  struct trib_transport **out)
{
    const struct verbs_port any = {.number = 0};
    struct verbs v;
    char why[200];

    if (params->list.exact && params->list.n <= params->rails)
        return open_named(opts, params, out);
    if (!load(params, &v, why)) /* opening a device reports the reason */
        return trib_verbs_open_one(opts, params, &any, out);
    struct verbs_ports *ports = malloc(sizeof(*ports));
    if (!ports)
        return trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory");
    trib_status_t status = find_ports(opts, params, &v, ports);
    if (status == TRIB_OK && ports->n_taken)
        status = open_chosen(opts, params, ports, out);
    else if (status == TRIB_OK && ports->n && is_choosy(params))
        status = fail_none(opts, ports);
    else if (status == TRIB_OK)
        status = trib_verbs_open_one(opts, params, &any, out);
    free(ports);
    return status;
}

/* Return the reason if the parameters are wrong for this host's devices. */
static trib_status_t describe_host(const struct verbs_params *params,
                                   struct trib_error *err, char *text, size_t bytes)
{
    const struct trib_transport_opts opts = {.size = 1, .err = err};
    struct verbs_ports *ports = malloc(sizeof(*ports));
    trib_status_t status = TRIB_OK;
    struct verbs v;
    char why[200];

    if (!ports || !load(params, &v, why)) {
        snprintf(text, bytes, "%s", ports ? why : "out of memory");
    } else {
        status = find_ports(&opts, params, &v, ports);
        if (status == TRIB_OK)
            describe(ports, trib_verbs_has_manager(&v), params->cache, text, bytes);
    }
    free(ports);
    return status;
}

void trib_verbs_devices(const char *text, char *out, size_t bytes)
{
    struct trib_error err = {0};
    const struct trib_transport_opts opts = {.size = 1, .params = text, .err = &err};
    struct verbs_params params;

    out[0] = '\0';
    if (trib_verbs_parse(&opts, &params) != TRIB_OK ||
        describe_host(&params, &err, out, bytes) != TRIB_OK)
        snprintf(out, bytes, "%s", trib_error_text(&err));
    else if (!out[0])
        snprintf(out, bytes, "no RDMA device");
}
