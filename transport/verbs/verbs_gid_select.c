/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/verbs/verbs_gid_select.h"

#include <string.h>

/* The scope of a GID: GIDs reach each other only within one scope. */
enum scope { SCOPE_NONE, SCOPE_LINK_V6, SCOPE_LINK_V4, SCOPE_V6, SCOPE_V4 };

/* Weights of a pair. Between two pairs the highest differing weight decides. */
enum {
    IS_V4 = 1,
    ONE_SUBNET = 2,
    HERE = 4, /* both addresses belong to a network device */
    ROUTABLE = 8,
    ROCE_V2 = 16,
    POSSIBLE = 32,
};

static enum scope scope_v4(const uint8_t ip[4])
{
    if (ip[0] == 0 || ip[0] == 127 || ip[0] >= 224)
        return SCOPE_NONE;
    return ip[0] == 169 && ip[1] == 254 ? SCOPE_LINK_V4 : SCOPE_V4;
}

static enum scope scope_of(const struct verbs_gid *gid)
{
    static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
    static const uint8_t zero[16];
    const uint8_t *b = gid->bytes;

    if (memcmp(b, mapped, sizeof(mapped)) == 0)
        return scope_v4(b + 12);
    /* This also excludes "::1" and a prefix without an interface identifier. */
    if (b[0] == 0xff || memcmp(b + 8, zero, 8) == 0 || memcmp(b, zero, 15) == 0)
        return SCOPE_NONE;
    return b[0] == 0xfe && (b[1] & 0xc0) == 0x80 ? SCOPE_LINK_V6 : SCOPE_V6;
}

bool trib_verbs_gid_usable(const struct verbs_gid *gid, enum verbs_layer layer)
{
    bool fits = layer == VERBS_ETHERNET
                    ? gid->type == VERBS_GID_ROCE_V1 || gid->type == VERBS_GID_ROCE_V2
                    : gid->type == VERBS_GID_IB;

    return fits && scope_of(gid) != SCOPE_NONE;
}

bool trib_verbs_gid_routable(const struct verbs_gid *gid)
{
    return scope_of(gid) >= SCOPE_V6;
}

static int common_bits(const uint8_t a[16], const uint8_t b[16])
{
    int bits = 0;

    while (bits < 128 && !((a[bits / 8] ^ b[bits / 8]) & 0x80 >> bits % 8))
        bits++;
    return bits;
}

/* If no network device tells the prefix length, assume the usual one. */
static int prefix_of(const struct verbs_gid *gid)
{
    if (gid->prefix)
        return gid->prefix;
    return scope_of(gid) == SCOPE_V4 ? 96 + 24 : 64;
}

void trib_verbs_gid_net(const struct verbs_gid *gid, uint8_t net_out[16])
{
    const int prefix = prefix_of(gid);

    memcpy(net_out, gid->bytes, 16);
    for (int bit = prefix; bit < 128; bit++)
        net_out[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
}

static bool one_subnet(const struct verbs_gid *a, const struct verbs_gid *b)
{
    int bits = common_bits(a->bytes, b->bytes);

    return bits >= prefix_of(a) && bits >= prefix_of(b);
}

static bool same_bytes(const struct verbs_gid *a, const struct verbs_gid *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* Return 0 for an unusable pair. RoCE v1 is not routable. */
static int worth(const struct verbs_gid *a, const struct verbs_gid *b, bool one_device)
{
    enum scope scope = scope_of(a);
    bool subnet = one_subnet(a, b), v2 = a->type == VERBS_GID_ROCE_V2;

    if (a->type != b->type || scope != scope_of(b) ||
        (same_bytes(a, b) && !one_device) || (!v2 && scope >= SCOPE_V6 && !subnet))
        return 0;
    return POSSIBLE + (v2 ? ROCE_V2 : 0) + (scope >= SCOPE_V6 ? ROUTABLE : 0) +
           (a->prefix && b->prefix ? HERE : 0) + (subnet ? ONE_SUBNET : 0) +
           (scope == SCOPE_V4 ? IS_V4 : 0);
}

static enum verbs_way roce_way(int best)
{
    bool v2 = best & ROCE_V2;

    if (!(best & ROUTABLE))
        return v2 ? VERBS_WAY_V2_LINK : VERBS_WAY_V1_LINK;
    if (!(best & ONE_SUBNET))
        return VERBS_WAY_V2_ROUTED;
    return v2 ? VERBS_WAY_V2_SUBNET : VERBS_WAY_V1_SUBNET;
}

/* Return the reason closest to a match if no pair is usable. */
static enum verbs_way why_not(const struct verbs_gid_table *own,
                              const struct verbs_gid_table *peer)
{
    enum verbs_way why = VERBS_NO_COMMON_TYPE;

    for (int i = 0; i < own->n; i++) {
        for (int k = 0; k < peer->n; k++) {
            const struct verbs_gid *a = &own->gid[i], *b = &peer->gid[k];
            if (a->type != b->type)
                continue;
            if (scope_of(a) == scope_of(b))
                return VERBS_NO_COMMON_SUBNET;
            why = VERBS_NO_COMMON_SCOPE;
        }
    }
    return why;
}

static void pair_roce(const struct verbs_gid_table *own,
                      const struct verbs_gid_table *peer, struct verbs_pair *out)
{
    int best = 0;

    for (int i = 0; i < own->n; i++) {
        for (int k = 0; k < peer->n; k++) {
            int w = worth(&own->gid[i], &peer->gid[k], own->node == peer->node);
            if (w <= best)
                continue;
            best = w;
            out->own = (uint8_t)i;
            out->peer = (uint8_t)k;
        }
    }
    out->found = best > 0;
    out->global = true;
    out->way = best ? roce_way(best) : why_not(own, peer);
}

/* Within a subnet the LID is the address. Only a subnet manager knows the path to
 * another subnet; librdmacm queries it. */
static void pair_infiniband(const struct verbs_gid_table *own,
                            const struct verbs_gid_table *peer, struct verbs_pair *out)
{
    out->way = VERBS_NO_LID;
    if (!own->lid || !peer->lid)
        return;
    out->global = own->grh || peer->grh;
    out->way = VERBS_WAY_IB;
    out->found = !out->global && (own->n == 0 || peer->n == 0);
    for (int i = 0; i < own->n && !out->found; i++) {
        for (int k = 0; k < peer->n && !out->found; k++) {
            out->found = memcmp(own->gid[i].bytes, peer->gid[k].bytes, 8) == 0;
            out->own = (uint8_t)i;
            out->peer = (uint8_t)k;
        }
    }
    if (!out->found)
        out->way = own->n == 0    ? VERBS_NO_GID_HERE
                   : peer->n == 0 ? VERBS_NO_GID_THERE
                                  : VERBS_NO_COMMON_SUBNET;
}

struct verbs_pair trib_verbs_pair(const struct verbs_gid_table *own,
                                  const struct verbs_gid_table *peer)
{
    struct verbs_pair pair = {.mtu = own->mtu < peer->mtu ? own->mtu : peer->mtu};

    assert(own->n <= VERBS_GIDS && peer->n <= VERBS_GIDS);
    if (own->layer != peer->layer)
        pair.way = VERBS_NO_COMMON_LAYER;
    else if (own->layer == VERBS_INFINIBAND)
        pair_infiniband(own, peer, &pair);
    else if (own->n == 0 || peer->n == 0)
        pair.way = own->n == 0 ? VERBS_NO_GID_HERE : VERBS_NO_GID_THERE;
    else
        pair_roce(own, peer, &pair);
    return pair;
}

enum verbs_way trib_verbs_way_back(enum verbs_way way)
{
    if (way == VERBS_NO_GID_HERE)
        return VERBS_NO_GID_THERE;
    return way == VERBS_NO_GID_THERE ? VERBS_NO_GID_HERE : way;
}

const char *trib_verbs_way_text(enum verbs_way way)
{
    static const char *const texts[VERBS_WAYS] = {
        [VERBS_WAY_IB] = "InfiniBand, same subnet",
        [VERBS_WAY_V2_SUBNET] = "RoCE v2, same subnet",
        [VERBS_WAY_V2_ROUTED] = "RoCE v2, routed",
        [VERBS_WAY_V2_LINK] = "RoCE v2, link-local addresses",
        [VERBS_WAY_V1_SUBNET] = "RoCE v1, same subnet",
        [VERBS_WAY_V1_LINK] = "RoCE v1, link-local addresses",
        [VERBS_NO_COMMON_LAYER] =
            "one port is InfiniBand, the other Ethernet: select devices of one network "
            "on both ranks with verbs:device=NAME",
        [VERBS_NO_GID_HERE] =
            "the port of this rank has no GID that peers can reach: check ibv_devinfo "
            "-v, and that its network device is up",
        [VERBS_NO_GID_THERE] =
            "the port of the peer has no GID that others can reach: check ibv_devinfo "
            "-v there, and that its network device is up",
        [VERBS_NO_COMMON_TYPE] =
            "one port has only RoCE v1 GIDs, the other only v2: give all ranks the "
            "same verbs:roce=, and check ibv_devinfo -v on both hosts",
        [VERBS_NO_COMMON_SCOPE] =
            "the GIDs of both ports have no kind of address in common (IPv4, IPv6, "
            "link-local): assign addresses of one kind to their network devices",
        [VERBS_NO_COMMON_SUBNET] =
            "the GIDs of both ports have no subnet in common: assign addresses of one "
            "subnet to their network devices; on InfiniBand, IP addresses (IPoIB) let "
            "librdmacm find the route",
        [VERBS_NO_LID] = "a port has no LID: is a subnet manager running?",
    };

    if ((unsigned)way >= VERBS_WAYS || !texts[way])
        return "for a reason unknown to this version";
    return texts[way];
}
