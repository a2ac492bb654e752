/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports of this host and paths to peers' ports, for backends over IP. Addresses are in
 * the format of base/addresses.h.
 */
#ifndef TRANSPORT_COMMON_NET_ADDR_H
#define TRANSPORT_COMMON_NET_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <tributary/status.h>

#include "base/acceptor.h"
#include "base/addresses.h"
#include "base/idle_function.h"

/* Silent connections that a port keeps, in addition to one per rank, so that a burst of
 * ranks shuts no rank out. Beyond this limit the oldest connection is dropped. */
#define TRIB_NET_UNAUTHENTICATED 64

#define TRIB_NET_AT_BYTES 200

/* Congestion control within a host. BBR, a common default, paces by its measured rate,
 * which is low when other programs use the cores. reno is in every kernel, and open to
 * all users. */
#define TRIB_NET_UNPACED "reno"

struct trib_error;
struct trib_log;

/* A socket bound to all addresses of this host. */
struct trib_net_port {
    int fd; /* non-blocking */
    int family; /* AF_INET6, which also accepts IPv4; AF_INET if the host has no IPv6 */
    uint16_t port;
    bool fenced; /* trib_net_fence attached a filter */
};

/* The rank that listens, and its transport, for log lines. */
struct trib_net_rank {
    const char *component;
    int self;
    int size;
};

/**
 * trib_net_bind - open a new socket at the first free port of a range.
 *
 * type     SOCK_STREAM: the socket listens, even if connections of a finished job still
 *          linger in the kernel; or SOCK_DGRAM
 * first    0: any port
 * errors   TRIB_ERR_SYSTEM, with a message that begins with `owner`
 */
trib_status_t trib_net_bind(const char *owner, int type, int first, int ports,
                            struct trib_net_port *out, struct trib_error *err);

/**
 * trib_net_fence - have the kernel drop packets to a port unless they come by a chosen
 * network.
 *
 * Loopback stays open, for ranks on this host.
 * choice   NULL or empty: the port is open to all networks. If the kernel rejects the
 *          filter, the port stays open and a warning is logged
 */
void trib_net_fence(const struct trib_net_choice *choice, const char *owner,
                    const struct trib_log *log, struct trib_net_port *port);

/** trib_net_accepted - set the options of a connection accepted at a port, such as
 * TCP_NODELAY. */
void trib_net_accepted(const struct trib_net_port *port, int fd, const uint8_t ip[16]);

#define TRIB_NET_PEEK_MAX 128 /* bytes */

/** trib_net_is_truncated - return true if the stream has ended before its next n bytes,
 * at most TRIB_NET_PEEK_MAX, were complete. Otherwise the rest is still on its way. */
bool trib_net_is_truncated(int fd, size_t n);

/**
 * trib_net_acceptor_open - open the acceptor of a rank's port: a place for each rank,
 * and some for others.
 *
 * a        its ops, owner and log are set
 * errors   TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_net_acceptor_open(struct trib_acceptor *a,
                                     const struct trib_net_rank *rank,
                                     const struct trib_net_port *port,
                                     struct trib_error *err);

/* Addresses that a host offers to peers, in order of preference. If `met` is set, the
 * first is the address that it used in the ranks' rendezvous. */
#define TRIB_NET_OFFERED 32
struct trib_net_list {
    uint8_t n;
    uint8_t met;
    /* per address: its length, 4 (IPv4) or 16, then that many bytes */
    uint8_t bytes[254];
};

/* The networks of a transport, for all its peers. Several threads may connect at once:
 * `elsewhere` and `last` are hints. */
struct trib_net_ways {
    struct trib_net_choice choice;
    struct trib_net_met met;
    _Atomic bool elsewhere; /* some peer was not reached by its rendezvous address */
    _Atomic uint64_t last[2]; /* address that reached the last peer; zero: none yet */
    struct trib_idle *idle; /* called while a connection is made; or NULL */
};

/** trib_net_ways_init - parse net=TEXT of `owner`; met may be NULL.
 *
 * errors   TRIB_ERR_CONFIG, as trib_net_choose */
trib_status_t trib_net_ways_init(struct trib_net_ways *ways, const char *owner,
                                 const char *text, const struct trib_net_met *met,
                                 struct trib_error *err);

/** trib_net_offer - list the addresses of this host for its peers. If there are too
 * many, a warning goes to `log`, which may be NULL. */
void trib_net_offer(const struct trib_net_ways *ways, const char *owner,
                    const struct trib_log *log, struct trib_net_list *out);

/** trib_net_list_put - append an address; return false if there is no room. */
bool trib_net_list_put(struct trib_net_list *list, const uint8_t ip[16]);

/** trib_net_list_get - read at most max addresses. Parsing stops at the first malformed
 * entry. */
int trib_net_list_get(const struct trib_net_list *list, uint8_t (*ip_out)[16], int max);

/* The listener of a peer. */
struct trib_net_place {
    const struct trib_net_list *list;
    uint16_t port;
    bool near; /* in this network namespace */
    bool apart; /* certainly on another host */
};

/* The address that answered, or the reason why none did. */
struct trib_net_found {
    uint8_t ip[16];
    /* on failure: "10.0.0.1 (No route to host), fd77::1 and 3 more" */
    char at[TRIB_NET_AT_BYTES];
    /* on failure: follows the text of errno: "" or "; it is …", a literal */
    const char *cure;
};

/**
 * trib_net_reach - open a TCP connection by the first address that answers.
 *
 * A process in this network namespace is reached through loopback. Otherwise the order
 * is: the peer's rendezvous address, addresses similar to the one that reached the last
 * peer, addresses of a common subnet, then all others. Attempts start 200 ms apart and
 * run concurrently. An address that this host has, too, such as a container bridge's,
 * may lead back here. Such addresses are tried only after all others have failed.
 *
 * returns  a non-blocking socket, or -1 and errno
 * thread   callers that share `ways` must take turns
 */
int trib_net_reach(struct trib_net_ways *ways, const struct trib_net_place *place,
                   struct trib_net_found *out);

/** trib_net_space - return the inode of the network namespace; 0: unknown. */
uint64_t trib_net_space(void);

/** trib_net_is_port_closed - return true if a MSG_ERRQUEUE message says that the remote
 * port is closed. */
bool trib_net_is_port_closed(struct msghdr *m);

#endif
