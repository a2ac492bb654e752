/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This rank as its peers see it, for the backends that speak IP: its process, its key,
 * its networks, its heartbeats. tcp and ucx also share the form of their addresses.
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
    const char *owner; /* the backend, for sentences */
    uint32_t magic, version; /* of its addresses, if they are struct
                              * trib_ip_address */
    struct trib_process me;
    uint64_t net; /* inode of the network name space */
    uint64_t key; /* random: strangers and other jobs do not know it */
    struct trib_net_ways ways;
    struct trib_heartbeat *heartbeat;
    bool own_heartbeat; /* false: the heartbeats are the caller's */
    bool uses_proc; /* looks for peers of this host in /proc */
};

/* The address of tcp and ucx: where their socket listens. */
struct trib_ip_address {
    uint32_t magic;
    uint32_t version;
    uint16_t port;
    uint16_t heartbeat_port; /* UDP */
    int32_t pid;
    uint64_t key;
    uint64_t heartbeat_key;
    uint64_t start, space, boot; /* of trib_process */
    uint64_t net;
    struct trib_net_list list;
};
static_assert(sizeof(struct trib_ip_address) <= TRIB_ADDRESS_MAX, "address");

/* The data for watching a peer; every backend over IP carries them in its address. */
struct trib_ip_identity {
    struct trib_process who;
    uint16_t heartbeat_port;
    uint64_t heartbeat_key;
};

/**
 * trib_ip_endpoint_init - everything but the key, the heartbeats, magic and version.
 *
 * ways     of trib_net_ways_init
 */
void trib_ip_endpoint_init(struct trib_ip_endpoint *e,
                           const struct trib_transport_opts *opts, const char *owner,
                           const struct trib_net_ways *ways, bool uses_proc);

/** trib_ip_endpoint_key - draw the random key; false and errno: no random bytes. */
bool trib_ip_endpoint_key(struct trib_ip_endpoint *e);

/**
 * trib_ip_endpoint_start - open heartbeats in a range of ports, unless the caller
 * shares its own; networks that were not chosen are dropped.
 */
trib_status_t trib_ip_endpoint_start(struct trib_ip_endpoint *e,
                                     const struct trib_transport_opts *opts, int port,
                                     int ports);

/** trib_ip_endpoint_close - end the heartbeats that this endpoint has opened. */
void trib_ip_endpoint_close(struct trib_ip_endpoint *e);

/** trib_ip_endpoint_address - the address of a socket that listens at `port`. */
void trib_ip_endpoint_address(const struct trib_ip_endpoint *e, uint16_t port,
                              const struct trib_log *log, struct trib_address *out);

/**
 * trib_ip_endpoint_read - a peer's address, if the peer can be connected.
 *
 * errors   TRIB_ERR_INVALID: not an address of this backend; TRIB_ERR_MISMATCH: of
 *          another version; or as of
 *          trib_peer_check_connect
 */
trib_status_t trib_ip_endpoint_read(const struct trib_ip_endpoint *e,
                                    const struct trib_peers *peers, int peer,
                                    const struct trib_address *address,
                                    struct trib_ip_address *out);

/**
 * trib_ip_endpoint_connect - a TCP connection to the owner of an address.
 *
 * fd_out   a non-blocking socket
 * found    by which of its addresses the peer was reached
 * errors   TRIB_ERR_PEER_LOST, with a sentence
 */
trib_status_t trib_ip_endpoint_connect(struct trib_ip_endpoint *e,
                                       const struct trib_ip_address *a,
                                       struct trib_error *err, int *fd_out,
                                       struct trib_net_found *found);

/** trib_ip_identity_of - what watching the owner of an address takes. */
struct trib_ip_identity trib_ip_identity_of(const struct trib_ip_address *a);

/**
 * trib_ip_endpoint_watch - watch a peer from now on: by this host's kernel, or by
 * heartbeats along the way that the connection takes.
 *
 * ip       by which the peer was reached
 */
void trib_ip_endpoint_watch(const struct trib_ip_endpoint *e, int peer,
                            const struct trib_ip_identity *who, const uint8_t ip[16],
                            struct trib_peer_base *p);

#endif
