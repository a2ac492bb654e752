/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses and ports of this host, for backends that speak IP. An IPv4 address is kept
 * mapped into IPv6.
 */
#ifndef TRANSPORT_NET_H
#define TRANSPORT_NET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <tributary/status.h>

/* Connections that say nothing, beside one of each rank, for which a port has places: a
 * burst of ranks keeps no rank out. Of more the first to come goes. */
#define TRIB_NET_STRANGERS 64

struct ifaddrs;
struct trib_error;

/* A socket that is bound to all addresses of this host. */
struct trib_net_port {
    int fd; /* non-blocking */
    int family; /* AF_INET6, which also takes IPv4; AF_INET where there is no IPv6 */
    uint16_t port;
};

/**
 * trib_net_bind - a new socket at the first free port of a range.
 *
 * type     SOCK_STREAM or SOCK_DGRAM
 * first    0: any port
 * errors   TRIB_ERR_SYSTEM, with a sentence that begins with `owner`
 */
trib_status_t trib_net_bind(const char *owner, int type, int first, int ports,
                            struct trib_net_port *out, struct trib_error *err);

/** trib_net_sockaddr - an address as connect and sendto of a family take it. */
socklen_t trib_net_sockaddr(const uint8_t ip[16], uint16_t port, int family,
                            struct sockaddr_storage *out);

/* Where a process listens. */
struct trib_net_place {
    const uint8_t (*ip)[16];
    int n;
    uint16_t port;
    bool near; /* in this network name space */
};

/**
 * trib_net_dial_any - a TCP connection by the first address that can be dialled, each
 * for up to 2 s.
 *
 * A near process is reached through loopback. To another host an address that this one
 * has, too, as that of a container bridge, would lead back here: it is left out.
 *
 * ip_out   the one that was dialled last
 * returns  a non-blocking socket, or -1 and errno
 */
int trib_net_dial_any(const struct trib_net_place *place, uint8_t ip_out[16]);

/** trib_net_dial - a TCP connection, non-blocking; -1 and errno. Ends with ETIMEDOUT at the
 * deadline, whatever signals come. */
int trib_net_dial(const uint8_t ip[16], uint16_t port, uint64_t deadline);

/** trib_net_ip - the address in a sockaddr of IPv4 or IPv6. */
void trib_net_ip(const struct sockaddr *from, uint8_t ip_out[16]);

/** trib_net_is_v4 - a mapped IPv4 address? */
bool trib_net_is_v4(const uint8_t ip[16]);

/** trib_net_text - "10.0.0.1" or "fe80::1"; needs 46 bytes. */
void trib_net_text(const uint8_t ip[16], char *text, unsigned bytes);

/** trib_net_usable - an address of this host as peers may use it; false: not one, or not
 * of this family. */
bool trib_net_usable(const struct ifaddrs *i, int family, uint8_t ip_out[16]);

/** trib_net_own - addresses under which peers may find this host, at most max of them;
 * IPv4 first, neither loopback nor link-local. */
int trib_net_own(uint8_t (*ip_out)[16], int max);

/** trib_net_space - inode of the network name space; 0: not known. */
uint64_t trib_net_space(void);

extern const uint8_t trib_net_loopback[16];

#endif
