/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This rank as its peers see it, for backends over IP: process, key, networks,
 * heartbeats. tcp and ucx also share the format of addresses.
 */
#ifndef TRANSPORT_COMMON_IP_ENDPOINT_H
#define TRANSPORT_COMMON_IP_ENDPOINT_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/process.h"
#include "transport/common/net_addr.h"
#include "transport/common/peer.h"

struct trib_ip_endpoint {
    const char *owner; /* name of the backend, for messages */
    uint32_t magic, version; /* of its addresses, if they are struct trib_ip_address */
    struct trib_process me;
    uint64_t net; /* inode of the network namespace */
    uint64_t key; /* random: unknown to unauthenticated peers and other jobs */
    struct trib_net_ways ways;
    struct trib_heartbeat *heartbeat;
    bool own_heartbeat; /* false: the caller owns the heartbeats */
    bool uses_proc; /* watches peers on this host through /proc */
};

/* Address used by tcp and ucx: where their socket listens. */
struct trib_ip_address {
    uint32_t magic;
    uint32_t version;
    uint16_t port;
    uint16_t heartbeat_port; /* UDP */
    int32_t pid;
    uint64_t key;
    uint64_t heartbeat_key;
    uint64_t start, space, boot; /* of struct trib_process */
    uint64_t net;
    struct trib_net_list list;
};
static_assert(sizeof(struct trib_ip_address) <= TRIB_ADDRESS_MAX, "address");

/* Data needed to watch a peer; every backend over IP puts them into its address. */
struct trib_ip_identity {
    struct trib_process who;
    uint16_t heartbeat_port;
    uint64_t heartbeat_key;
};

/**
 * trib_ip_endpoint_init - set everything but the key, the heartbeats, magic and
 * version.
 *
 * ways     from trib_net_ways_init
 */
void trib_ip_endpoint_init(struct trib_ip_endpoint *e,
                           const struct trib_transport_opts *opts, const char *owner,
                           const struct trib_net_ways *ways, bool uses_proc);

/** trib_ip_endpoint_key - draw the random key; false and errno if random bytes are
 * unavailable. */
bool trib_ip_endpoint_key(struct trib_ip_endpoint *e);

/**
 * trib_ip_endpoint_start - open heartbeats in a range of ports, unless the caller
 * shares its own. Packets from networks that were not chosen are dropped.
 */
trib_status_t trib_ip_endpoint_start(struct trib_ip_endpoint *e,
                                     const struct trib_transport_opts *opts, int port,
                                     int ports);

/** trib_ip_endpoint_close - stop the heartbeats that this endpoint opened. */
void trib_ip_endpoint_close(struct trib_ip_endpoint *e);

/** trib_ip_endpoint_address - write the address of a socket that listens at `port`. */
void trib_ip_endpoint_address(const struct trib_ip_endpoint *e, uint16_t port,
                              const struct trib_log *log, struct trib_address *out);

/**
 * trib_ip_endpoint_read - parse a peer's address and check that the peer can be
 * connected.
 *
 * errors   TRIB_ERR_INVALID: not an address of this backend; TRIB_ERR_MISMATCH: another
 *          version; or as trib_peer_check_connect
 */
trib_status_t trib_ip_endpoint_read(const struct trib_ip_endpoint *e,
                                    const struct trib_peers *peers, int peer,
                                    const struct trib_address *address,
                                    struct trib_ip_address *out);

/** trib_ip_endpoint_reach - trib_net_reach for a process of this boot id and network
 * namespace; 0: unknown. Within a namespace loopback is used. */
int trib_ip_endpoint_reach(struct trib_ip_endpoint *e, const struct trib_net_list *list,
                           uint16_t port, uint64_t boot, uint64_t net,
                           struct trib_net_found *found);

/**
 * trib_ip_endpoint_connect - open a TCP connection to the owner of an address.
 *
 * fd_out   a non-blocking socket
 * found    the address that answered
 * errors   TRIB_ERR_PEER_LOST, with a message
 */
trib_status_t trib_ip_endpoint_connect(struct trib_ip_endpoint *e,
                                       const struct trib_ip_address *a,
                                       struct trib_error *err, int *fd_out,
                                       struct trib_net_found *found);

/** trib_ip_identity_of - return the data needed to watch the owner of an address. */
struct trib_ip_identity trib_ip_identity_of(const struct trib_ip_address *a);

/**
 * trib_ip_endpoint_watch - start watching a peer: through this host's kernel, or by
 * heartbeats over the path of the connection.
 *
 * ip       the address used to reach the peer
 */
void trib_ip_endpoint_watch(const struct trib_ip_endpoint *e, int peer,
                            const struct trib_ip_identity *who, const uint8_t ip[16],
                            struct trib_peer_base *p);

#endif
