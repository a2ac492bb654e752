/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Choice of the pair of GIDs that connects two ports. A port has many GIDs: one for
 * each RoCE version and address of its network devices. No fixed index is right for
 * every peer.
 *
 * This code needs neither device nor library.
 */
#ifndef TRANSPORT_VERBS_VERBS_GID_SELECT_H
#define TRANSPORT_VERBS_VERBS_GID_SELECT_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define VERBS_GIDS 96 /* GIDs of a port that peers receive */

/* Same values as enum ibv_gid_type. */
enum verbs_gid_type { VERBS_GID_IB, VERBS_GID_ROCE_V1, VERBS_GID_ROCE_V2 };

/* Same values as IBV_LINK_LAYER_*. */
enum verbs_layer { VERBS_INFINIBAND = 1, VERBS_ETHERNET };

struct verbs_gid {
    uint8_t bytes[16]; /* network byte order; IPv4 addresses are mapped into IPv6 */
    uint8_t type; /* enum verbs_gid_type */
    uint8_t prefix; /* prefix length; 0: no network device here has this address */
    uint8_t index; /* in the port's table */
    uint8_t unused;
};
static_assert(sizeof(struct verbs_gid) == 20, "no padding");

/* A port, as described to itself and its peers. */
struct verbs_gid_table {
    uint64_t node; /* node GUID of the device */
    uint16_t lid; /* InfiniBand; 0: no subnet manager */
    uint8_t layer; /* enum verbs_layer */
    uint8_t mtu; /* active MTU, as enum ibv_mtu: 1 is 256 bytes, 5 is 4096 */
    uint8_t grh; /* every packet needs a global route header */
    uint8_t n;
    uint16_t unused;
    struct verbs_gid gid[VERBS_GIDS];
};

/* The reason for a pair, or for none. The numbers are part of the wire format. */
enum verbs_way {
    VERBS_WAY_NONE,
    VERBS_WAY_IB,
    VERBS_WAY_V2_SUBNET,
    VERBS_WAY_V2_ROUTED,
    VERBS_WAY_V2_LINK,
    VERBS_WAY_V1_SUBNET,
    VERBS_WAY_V1_LINK,
    VERBS_NO_COMMON_LAYER,
    VERBS_NO_GID_HERE,
    VERBS_NO_GID_THERE,
    VERBS_NO_COMMON_TYPE,
    VERBS_NO_COMMON_SCOPE,
    VERBS_NO_COMMON_SUBNET,
    VERBS_NO_LID,
    VERBS_WAYS,
};

struct verbs_pair {
    enum verbs_way way;
    bool found;
    bool global; /* packets carry a global route header */
    uint8_t own, peer; /* positions in the tables; valid if both have GIDs */
    uint8_t mtu; /* the smaller of both */
};

/**
 * trib_verbs_pair - return the best pair of GIDs.
 *
 * Both GIDs have the same type and the same kind of address. RoCE v2 is preferred to
 * v1; then routable to link-local; then addresses that a network device has on both
 * sides; then one subnet to a route; then IPv4; then the lowest indices. An address
 * that both ends have, such as the one of a bridge, is excluded unless both ends
 * are one device.
 *
 * thread   any; pure
 */
struct verbs_pair trib_verbs_pair(const struct verbs_gid_table *own,
                                  const struct verbs_gid_table *peer);

/** trib_verbs_gid_usable - return true if a peer can be reached by this GID. False for
 * empty, loopback and similar GIDs. */
bool trib_verbs_gid_usable(const struct verbs_gid *gid, enum verbs_layer layer);

/** trib_verbs_gid_routable - return true if a GID is neither empty nor link-local. */
bool trib_verbs_gid_routable(const struct verbs_gid *gid);

/** trib_verbs_gid_net - write the network of a GID: its address without the bits of the
 * host. */
void trib_verbs_gid_net(const struct verbs_gid *gid, uint8_t net_out[16]);

/** trib_verbs_way_text - return a clause, such as "RoCE v2, same subnet". */
const char *trib_verbs_way_text(enum verbs_way way);

/** trib_verbs_way_back - return the reason as seen from the other side of the pair. */
enum verbs_way trib_verbs_way_back(enum verbs_way way);

#endif
