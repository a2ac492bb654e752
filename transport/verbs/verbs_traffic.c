/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: what connections ask of the network: partition, traffic class, service level,
 * hop limit, and how often packets are sent again.
 *
 * Settings apply however ranks connect. If one is not set, librdmacm's value remains.
 * Connections by GIDs then use the port's first partition with full membership and its
 * default traffic class.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include "base/config.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "transport/verbs/verbs.h"

enum {
    RETRIES = 7, /* retransmissions of an unacknowledged packet, each after
                  * ack_timeout */
    RNR_FOREVER = 7, /* retry forever while the peer has no free receive */
    HOPS = 64,
};

#define PKEY_FULL 0x8000
#define PKEY_NUMBER 0x7fff
#define PKEY_DEFAULT 0xffff

/* Return the exponent n of the ack timeout. The device sends a packet 1 + `retries`
 * times and waits 4.096 us * 2^n after each; it may wait up to four times as long. A
 * silent peer must be lost after stop_ms, not before; 0: as late as possible. */
static int ack_timeout(int stop_ms, int64_t retries)
{
    int n = 8;

    while (n < 21 &&
           (!stop_ms || 4.096e-3 * (double)(1u << n) * (double)(1 + retries) < stop_ms))
        n++;
    return n;
}

static int pkeys_of(struct verbs *v)
{
    struct ibv_port_attr port = {0};

    return v->api.ibv_query_port(v->context, v->port_num, (void *)&port) == 0
               ? port.pkey_tbl_len
               : 0;
}

/* Return an entry of the port's table, or 0: it is empty. */
static uint16_t pkey_at(struct verbs *v, int index)
{
    uint16_t pkey;

    return v->api.ibv_query_pkey(v->context, v->port_num, index, &pkey) == 0
               ? ntohs(pkey)
               : 0;
}

/* Find a partition by its number, or the first one if `number` is 0. An entry with full
 * membership is preferred. Return its pkey, or 0. */
static uint16_t find_pkey(struct verbs *v, uint16_t number, uint16_t *index_out)
{
    const int n = pkeys_of(v);
    uint16_t found = 0;

    for (int i = 0; i < n && !(found & PKEY_FULL); i++) {
        const uint16_t pkey = pkey_at(v, i);
        if (!(pkey & PKEY_NUMBER) || (number && (pkey & PKEY_NUMBER) != number) ||
            (found && !(pkey & PKEY_FULL)))
            continue;
        found = pkey;
        *index_out = (uint16_t)i;
    }
    return found;
}

/* Return true for the partition of ports without a table, at index 0. */
static bool is_implied(const struct verbs *v, uint16_t pkey)
{
    return v->layer != VERBS_INFINIBAND && pkey == PKEY_DEFAULT;
}

int trib_verbs_pkey_index(struct verbs *v, uint16_t pkey, uint16_t *out)
{
    *out = 0;
    return find_pkey(v, pkey & PKEY_NUMBER, out) || is_implied(v, pkey) ? 0 : ENOENT;
}

/* Two limited members of a partition do not reach each other. */
static bool pkeys_match(uint16_t a, uint16_t b)
{
    return (a & PKEY_NUMBER) == (b & PKEY_NUMBER) && ((a | b) & PKEY_FULL);
}

/* Return "0x8005 (verbs:pkey)", or "0xffff (librdmacm's)". */
static char *partition_text(bool set, uint16_t pkey, char text[32])
{
    snprintf(text, 32, "%#06x (%s)", pkey, set ? "verbs:pkey" : "librdmacm's");
    return text;
}

/* Return the partition that librdmacm uses for an id, or 0 if unknown. */
static uint16_t manager_pkey(struct verbs *v, struct rdma_cm_id *id)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
    int mask;

    return v->api.rdma_init_qp_attr(id, &attr, &mask) == 0 ? pkey_at(v, attr.pkey_index)
                                                           : 0;
}

bool trib_verbs_manager_shares(struct verbs *v, struct rdma_cm_id *id, uint16_t theirs,
                               char *why, size_t bytes)
{
    const uint16_t usual = manager_pkey(v, id);
    const bool set = v->traffic.pkey >= 0;
    const uint16_t own = set ? v->pkey : usual;
    const uint16_t peers = theirs ? theirs : usual;
    const uint16_t full = theirs ? 0 : PKEY_FULL; /* it may be */
    char here[32], there[32];

    if ((!set && !theirs) || !own || !peers || pkeys_match(own, peers | full))
        return true;
    snprintf(why, bytes,
             "the partitions differ: here %s, there %s: set the same verbs:pkey on all "
             "ranks%s",
             partition_text(set, own, here), partition_text(theirs != 0, peers, there),
             (own ^ peers) & PKEY_NUMBER ? "" : ", and make one port a full member");
    return false;
}

/* A local setting must name the same partition. */
bool trib_verbs_shares_partition(struct verbs *v, uint16_t pkey)
{
    uint16_t index;
    uint16_t own = find_pkey(v, pkey & PKEY_NUMBER, &index);

    if (!own && is_implied(v, pkey))
        own = PKEY_DEFAULT;
    return own && pkeys_match(own, pkey) &&
           (v->traffic.pkey < 0 || (v->pkey & PKEY_NUMBER) == (pkey & PKEY_NUMBER));
}

static trib_status_t no_partition(struct verbs *v)
{
    const int n = pkeys_of(v);
    char list[160] = "";

    for (int i = 0; i < n; i++) {
        const uint16_t pkey = pkey_at(v, i);
        if (pkey)
            trib_text_append(list, sizeof(list), "%s%#06x", *list ? ", " : "", pkey);
    }
    if (v->traffic.pkey < 0)
        return trib_fail(v->err, TRIB_ERR_UNSUPPORTED,
                         "verbs: port %d of %s is in no partition: is a subnet manager "
                         "running?",
                         v->port_num, v->device);
    return trib_fail(v->err, TRIB_ERR_CONFIG,
                     "verbs: pkey=%#06x: port %d of %s is not in this partition, but "
                     "in %s",
                     (unsigned)v->traffic.pkey, v->port_num, v->device,
                     *list ? list : "none");
}

trib_status_t trib_verbs_traffic_choose(struct verbs *v)
{
    struct verbs_traffic *t = &v->traffic;
    const int tos =
        v->layer == VERBS_ETHERNET ? v->api.default_tos(v->device, v->port_num) : -1;
    uint16_t index;

    assert(v->context);
    if (t->retry_count < 0)
        t->retry_count = RETRIES;
    if (t->rnr_retry < 0)
        t->rnr_retry = RNR_FOREVER;
    if (t->ack_timeout < 0)
        t->ack_timeout = ack_timeout(v->cfg->stop_timeout_ms, t->retry_count);
    v->has_class = t->traffic_class >= 0 || tos >= 0;
    v->traffic_class = (uint8_t)(t->traffic_class >= 0 ? t->traffic_class
                                 : tos >= 0            ? tos
                                                       : 0);
    if (t->pkey < 0)
        v->pkey = find_pkey(v, 0, &index);
    else if (t->pkey & PKEY_NUMBER)
        v->pkey = find_pkey(v, t->pkey & PKEY_NUMBER, &index);
    if (!v->pkey && t->pkey < 0 && is_implied(v, PKEY_DEFAULT))
        v->pkey = PKEY_DEFAULT;
    if (!v->pkey)
        return no_partition(v);
    if (!v->api.counters(v->device, v->port_num, &v->counters))
        v->counters.port = 0;
    trib_log(v->log, TRIB_LOG_DEBUG, "verbs",
             "%s: partition %#06x, traffic class %d, ack timeout %d, %d retries",
             v->label, v->pkey, v->traffic_class, (int)t->ack_timeout,
             (int)t->retry_count);
    return TRIB_OK;
}

bool trib_verbs_set_class(struct verbs *v, struct rdma_cm_id *id)
{
    uint8_t tos = (uint8_t)v->traffic.traffic_class;

    /* On InfiniBand the option would ask the subnet manager for another path. */
    return v->traffic.traffic_class < 0 || v->layer != VERBS_ETHERNET ||
           v->api.rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos,
                                  sizeof(tos)) == 0;
}

void trib_verbs_trouble(struct verbs *v, char *text, size_t bytes)
{
    struct trib_rdma_counters now;
    char grown[200];

    text[0] = '\0';
    if (v->counters.port && v->api.counters(v->device, v->port_num, &now) &&
        trib_rdma_counters_grown(&v->counters, &now, grown, sizeof(grown)))
        snprintf(text, bytes, "%s port %d: %s", v->device, v->port_num, grown);
}

uint8_t trib_verbs_common_class(const struct verbs *v, bool has_class, uint8_t peers)
{
    return v->has_class || !has_class ? v->traffic_class : peers;
}

uint8_t trib_verbs_caps(const struct verbs *v)
{
    return VERBS_HAS_IMMEDIATE | (v->srq ? VERBS_HAS_SRQ : 0);
}

/*
 * Return a flow label for the queue pairs of a path to a peer. Adapters derive from it
 * the UDP source port of RoCE v2: 0xc000 | (low 14 bits ^ high 6 bits). So all paths of
 * a pair of ranks have different ports, and routers that hash them may choose different
 * ways.
 */
static uint32_t flow_label(const struct verbs *v, const struct verbs_link *link)
{
    const struct verbs_peer *p = link->qp->qp_context;
    const uint32_t peer = (uint32_t)(p - v->peers);
    const uint64_t random = trib_digest_seeded(&peer, sizeof(peer), v->local.key);
    const uint32_t label = ((uint32_t)random & 0x3ff8) | v->path;

    static_assert(MULTIRAIL_MAX <= 8, "three bits for the path");
    return label ? label : 0x2000; /* 0: none */
}

int trib_verbs_set_traffic(struct verbs *v, const struct verbs_link *link,
                           struct ibv_qp_attr *attr)
{
    const struct verbs_traffic *t = &v->traffic;
    const bool by_oob = link->by_oob;

    switch (attr->qp_state) {
    case IBV_QPS_INIT:
        return by_oob || t->pkey >= 0
                   ? trib_verbs_pkey_index(v, by_oob ? link->path.pkey : v->pkey,
                                           &attr->pkey_index)
                   : 0;
    case IBV_QPS_RTR:
        if (by_oob)
            attr->ah_attr.grh.traffic_class = link->path.traffic_class;
        else if (t->traffic_class >= 0)
            attr->ah_attr.grh.traffic_class = v->traffic_class;
        if (by_oob || t->hop_limit >= 0)
            attr->ah_attr.grh.hop_limit =
                (uint8_t)(t->hop_limit >= 0 ? t->hop_limit : HOPS);
        if (v->n_paths > 1)
            attr->ah_attr.grh.flow_label = flow_label(v, link);
        if (t->sl >= 0)
            attr->ah_attr.sl = (uint8_t)t->sl;
        break;
    default:
        attr->timeout = (uint8_t)t->ack_timeout;
        attr->retry_cnt = (uint8_t)t->retry_count;
        attr->rnr_retry = (uint8_t)t->rnr_retry;
        break;
    }
    return 0;
}
