/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/common/ip_endpoint.h"

#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "transport/open.h"

void trib_ip_endpoint_init(struct trib_ip_endpoint *e,
                           const struct trib_transport_opts *opts, const char *owner,
                           const struct trib_net_ways *ways, bool uses_proc)
{
    *e = (struct trib_ip_endpoint){
        .owner = owner,
        .net = trib_net_space(),
        .ways = *ways,
        .heartbeat = opts->heartbeat,
        .uses_proc = uses_proc,
    };
    e->ways.idle = opts->idle;
    trib_process_self(&e->me);
}

bool trib_ip_endpoint_key(struct trib_ip_endpoint *e)
{
    return getrandom(&e->key, sizeof(e->key), 0) == (ssize_t)sizeof(e->key);
}

trib_status_t trib_ip_endpoint_start(struct trib_ip_endpoint *e,
                                     const struct trib_transport_opts *opts, int port,
                                     int ports)
{
    if (e->heartbeat)
        return TRIB_OK;
    trib_status_t status =
        trib_heartbeat_open(opts, e->owner, port, ports, &e->heartbeat);
    e->own_heartbeat = status == TRIB_OK;
    if (e->own_heartbeat)
        trib_heartbeat_fence(e->heartbeat, &e->ways.choice);
    return status;
}

void trib_ip_endpoint_close(struct trib_ip_endpoint *e)
{
    if (e->own_heartbeat)
        trib_heartbeat_close(e->heartbeat);
    e->heartbeat = NULL;
    e->own_heartbeat = false;
}

void trib_ip_endpoint_address(const struct trib_ip_endpoint *e, uint16_t port,
                              const struct trib_log *log, struct trib_address *out)
{
    struct trib_ip_address a = {
        .magic = e->magic,
        .version = e->version,
        .port = port,
        .heartbeat_port = trib_heartbeat_port(e->heartbeat),
        .key = e->key,
        .heartbeat_key = trib_heartbeat_key(e->heartbeat),
        .start = e->me.start,
        .space = e->me.space,
        .boot = e->me.boot,
        .net = e->net,
        .pid = e->me.pid,
    };

    assert(a.magic);
    trib_net_offer(&e->ways, e->owner, log, &a.list);
    trib_peer_address(&a, sizeof(a), out);
}

trib_status_t trib_ip_endpoint_read(const struct trib_ip_endpoint *e,
                                    const struct trib_peers *peers, int peer,
                                    const struct trib_address *address,
                                    struct trib_ip_address *out)
{
    assert(e->magic);
    trib_status_t status = trib_peer_check_connect(peers, peer);
    if (status != TRIB_OK)
        return status;
    status = trib_peer_read_address(address, peer, e->owner, e->magic, out,
                                    sizeof(*out), peers->err);
    if (status == TRIB_OK && out->version != e->version)
        status = trib_fail(peers->err, TRIB_ERR_MISMATCH,
                           "peer %d speaks version %u of %s, this process version %u: "
                           "install the same version of Tributary",
                           peer, out->version, e->owner, e->version);
    return status;
}

int trib_ip_endpoint_reach(struct trib_ip_endpoint *e, const struct trib_net_list *list,
                           uint16_t port, uint64_t boot, uint64_t net,
                           struct trib_net_found *found)
{
    const struct trib_net_place place = {
        .list = list,
        .port = port,
        .near = boot && boot == e->me.boot && net == e->net && net,
        .apart = boot && e->me.boot && boot != e->me.boot,
    };

    assert(!place.near || !place.apart);
    return trib_net_reach(&e->ways, &place, found);
}

trib_status_t trib_ip_endpoint_connect(struct trib_ip_endpoint *e,
                                       const struct trib_ip_address *a,
                                       struct trib_error *err, int *fd_out,
                                       struct trib_net_found *found)
{
    *fd_out = trib_ip_endpoint_reach(e, &a->list, a->port, a->boot, a->net, found);
    if (*fd_out >= 0)
        return TRIB_OK;
    return trib_fail(err, TRIB_ERR_PEER_LOST,
                     "process %d cannot be reached at %s port %u: %m%s", a->pid,
                     found->at, a->port, found->cure);
}

struct trib_ip_identity trib_ip_identity_of(const struct trib_ip_address *a)
{
    return (struct trib_ip_identity){
        .who = {.pid = a->pid, .start = a->start, .space = a->space, .boot = a->boot},
        .heartbeat_port = a->heartbeat_port,
        .heartbeat_key = a->heartbeat_key,
    };
}

void trib_ip_endpoint_watch(const struct trib_ip_endpoint *e, int peer,
                            const struct trib_ip_identity *who, const uint8_t ip[16],
                            struct trib_peer_base *p)
{
    struct trib_peer_liveness_opts opts = {
        .me = &e->me,
        .who = &p->who,
        .proc = e->uses_proc,
        .heartbeat = e->heartbeat,
        .peer = peer,
        .heart = {.port = who->heartbeat_port,
                  .key = who->heartbeat_key,
                  .pid = who->who.pid},
    };

    p->who = who->who;
    memcpy(opts.heart.ip, ip, sizeof(opts.heart.ip));
    trib_peer_liveness_begin(&p->liveness, &opts);
}
