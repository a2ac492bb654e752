/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: the local address, and which addresses of a peer lead elsewhere.
 */
#include <assert.h>
#include <string.h>

#include "transport/verbs/verbs.h"

/* Leave out one more IP address. The first one stays. */
bool trib_verbs_shorten(struct trib_transport *t)
{
    struct verbs *v = verbs_of(t);

    if (v->untold_ips + 1 >= v->n_ips + v->more_ips)
        return false;
    v->untold_ips++;
    return true;
}

trib_status_t trib_verbs_address(struct trib_transport *t, struct trib_address *out)
{
    struct verbs *v = verbs_of(t);
    const int told = v->n_ips + v->more_ips - v->untold_ips;
    const int own = v->n_ips < told ? v->n_ips : told;
    struct verbs_address a = {
        .magic = VERBS_MAGIC,
        .port = v->port,
        .n = (uint16_t)own,
        .key = v->local.key,
        .start = v->local.me.start,
        .space = v->local.me.space,
        .boot = v->local.me.boot,
        .pid = v->local.me.pid,
        .heartbeat_port = trib_heartbeat_port(v->local.heartbeat),
        .heartbeat_key = trib_heartbeat_key(v->local.heartbeat),
        .oob_port = v->oob.at.port,
        .net = v->local.net,
        .more = (uint8_t)(told - own),
        .layer = v->layer,
        .piece_shift = v->piece_shift,
        .caps = trib_verbs_caps(v),
        .pkey = v->traffic.pkey >= 0 ? v->pkey : 0,
    };

    memcpy(a.ip, v->ip, (size_t)told * sizeof(a.ip[0]));
    trib_peer_address(&a, sizeof(a), out);
    return TRIB_OK;
}

/* Return true for an address of a peer on another host that this host has, too, such as
 * the one of a container bridge. */
bool trib_verbs_leads_back(const struct verbs *v, const struct verbs_address *a,
                           const struct verbs_ip *ip)
{
    for (int i = 0; i < v->n_ips + v->more_ips && a->boot != v->local.me.boot; i++) {
        if (memcmp(&v->ip[i], ip, sizeof(*ip)) == 0)
            return true;
    }
    return false;
}
