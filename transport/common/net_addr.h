/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports of this host and ways to the ports of peers, for backends that speak IP.
 * Addresses are those of base/addresses.h.
 */
#ifndef TRANSPORT_COMMON_NET_ADDR_H
#define TRANSPORT_COMMON_NET_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <tributary/status.h>

#include "base/addresses.h"
#include "base/idle_function.h"

/* Connections that say nothing, beside one of each rank, for which a port has places: a
 * burst of ranks keeps no rank out. Of more the first to come goes. */
#define TRIB_NET_STRANGERS 64

#define TRIB_NET_AT_BYTES 200

/* Congestion control within a host. BBR, the default of many, sends by timers at the
 * rate that it measures, and measures little where other programs take the cores. This
 * one is in every kernel, and open to all users. */
#define TRIB_NET_UNPACED "reno"

struct trib_error;
struct trib_log;

/* A socket that is bound to all addresses of this host. */
struct trib_net_port {
    int fd; /* non-blocking */
    int family; /* AF_INET6, which also takes IPv4; AF_INET where there is no IPv6 */
    uint16_t port;
    bool fenced; /* by trib_net_fence */
};

/**
 * trib_net_bind - a new socket at the first free port of a range.
 *
 * type     SOCK_STREAM: it listens, also where connections of a job that has ended are
 *          not forgotten yet; or SOCK_DGRAM
 * first    0: any port
 * errors   TRIB_ERR_SYSTEM, with a sentence that begins with `owner`
 */
trib_status_t trib_net_bind(const char *owner, int type, int first, int ports,
                            struct trib_net_port *out, struct trib_error *err);

/**
 * trib_net_fence - have the kernel drop what comes to a port by networks that were not
 * chosen.
 *
 * Loopback stays open, for ranks of this host.
 * choice   NULL or none: the port is open to all networks. A kernel that takes no
 *          filter leaves it open, which is a warning to log
 */
void trib_net_fence(const struct trib_net_choice *choice, const char *owner,
                    const struct trib_log *log, struct trib_net_port *port);

/**
 * trib_net_accept - the next connection at a port that listens.
 *
 * ip_out   from where it comes
 * returns  a non-blocking socket without delays, or -1 with errno
 */
int trib_net_accept(const struct trib_net_port *port, uint8_t ip_out[16]);

/* The addresses of a host as it offers them to peers, in the order of its preference.
 * The first is that by which it came to the meeting of the ranks, if `met` says so. */
#define TRIB_NET_OFFERED 32
struct trib_net_list {
    uint8_t n;
    uint8_t met;
    uint8_t bytes[254]; /* of each address 4 (IPv4) or 16, and which of both */
};

/* The networks of a transport, for all of its peers. */
struct trib_net_ways {
    struct trib_net_choice choice;
    struct trib_net_met met;
    bool elsewhere; /* a peer was not reached by the address of its meeting */
    uint8_t last[16]; /* by which a peer was reached last; zero: none was */
    struct trib_idle *idle; /* called while a connection is made; or NULL */
};

/** trib_net_ways_init - read net=TEXT of `owner`; met may be NULL.
 *
 * errors   TRIB_ERR_CONFIG, as of trib_net_choose */
trib_status_t trib_net_ways_init(struct trib_net_ways *ways, const char *owner,
                                 const char *text, const struct trib_net_met *met,
                                 struct trib_error *err);

/** trib_net_offer - the addresses of this host for its peers; log: NULL, or says which
 * are left out where there are too many. */
void trib_net_offer(const struct trib_net_ways *ways, const char *owner,
                    const struct trib_log *log, struct trib_net_list *out);

/** trib_net_list_put - append an address; false: no room. */
bool trib_net_list_put(struct trib_net_list *list, const uint8_t ip[16]);

/** trib_net_list_get - all addresses, at most max of them; a list that makes no sense
 * ends where it does not. */
int trib_net_list_get(const struct trib_net_list *list, uint8_t (*ip_out)[16], int max);

/* The listener of a peer. */
struct trib_net_place {
    const struct trib_net_list *list;
    uint16_t port;
    bool near; /* in this network name space */
    bool apart; /* certainly of another host */
};

/* The address that answered, or the reason why none did. */
struct trib_net_found {
    uint8_t ip[16];
    char at[TRIB_NET_AT_BYTES]; /* -1: "10.0.0.1 (No route to host), fd77::1 and 3
                                 * more" */
    const char *cure; /* -1: goes behind errno's words: "" or "; it is …", a literal */
};

/**
 * trib_net_reach - a TCP connection by the first address that answers.
 *
 * A near process is reached through loopback. Of another one's addresses come first
 * that by which it came to the meeting, then those of a subnet that both have, then the
 * rest; what worked for the last peer comes before those of its kind. Attempts begin
 * 200 ms after one another and go on side by side. Addresses that this host has, too,
 * as those of a container bridge, may lead back here: they come when all others have
 * failed.
 *
 * returns  a non-blocking socket, or -1 and errno
 * thread   those who share `ways` call in turn
 */
int trib_net_reach(struct trib_net_ways *ways, const struct trib_net_place *place,
                   struct trib_net_found *out);

/** trib_net_space - inode of the network name space; 0: not known. */
uint64_t trib_net_space(void);

/** trib_net_says_closed - of a message of MSG_ERRQUEUE: does a host answer that nobody
 * has the port? */
bool trib_net_says_closed(struct msghdr *m);

#endif
