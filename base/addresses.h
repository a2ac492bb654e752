/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IP addresses of this host, and the user's choice among them.
 *
 * An address has 16 bytes: IPv4 addresses are mapped into IPv6. A link-local IPv6
 * address is valid on one link only, so its bytes 4 to 7, zero on the wire, hold the
 * interface index here.
 */
#ifndef BASE_ADDRESSES_H
#define BASE_ADDRESSES_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <tributary/status.h>

#define TRIB_IP_TEXT_BYTES 64 /* "fe80::1%eth0" plus the NUL */
/* Maximum addresses considered; container hosts have the most. */
#define TRIB_OWN_IPS_MAX 256
#define TRIB_NET_CHOICES 8
#define TRIB_NET_TEXT_BYTES 256

struct ifaddrs;
struct trib_error;

extern const uint8_t trib_net_loopback[16]; /* 127.0.0.1 */

/** trib_net_sockaddr - convert an address to a sockaddr of `family`; return its
 * length. */
socklen_t trib_net_sockaddr(const uint8_t ip[16], uint16_t port, int family,
                            struct sockaddr_storage *out);

/** trib_net_ip - extract the address of an IPv4 or IPv6 sockaddr. */
void trib_net_ip(const struct sockaddr *from, uint8_t ip_out[16]);

/** trib_net_port - return the port of an IPv4 or IPv6 sockaddr. */
uint16_t trib_net_port(const struct sockaddr *from);

/** trib_net_is_v4 - return true for a mapped IPv4 address. */
bool trib_net_is_v4(const uint8_t ip[16]);

/** trib_net_is_link_local - return true for a link-local IPv6 address. */
bool trib_net_is_link_local(const uint8_t ip[16]);

/** trib_net_is_loopback - return true for 127.0.0.0/8 and ::1. */
bool trib_net_is_loopback(const uint8_t ip[16]);

/** trib_net_is_set - return true unless all bytes are zero, which means "unknown". */
bool trib_net_is_set(const uint8_t ip[16]);

/** trib_net_set_link - store the interface index in a link-local address; 0: none, as
 * on the wire. */
void trib_net_set_link(uint8_t ip[16], uint32_t link);

/** trib_net_text - format "10.0.0.1" or "fe80::1%eth0"; TRIB_IP_TEXT_BYTES fit any. */
void trib_net_text(const uint8_t ip[16], char *text, unsigned bytes);

/** trib_net_common_bits - return the number of leading bits common to two addresses. */
int trib_net_common_bits(const uint8_t a[16], const uint8_t b[16]);

/* Address of a local interface that is up. */
struct trib_own_ip {
    uint8_t ip[16];
    uint8_t prefix; /* prefix length of its subnet, of 128 bits */
    uint32_t link;  /* interface index */
    char name[IF_NAMESIZE];
};

/**
 * trib_own_ips - list the addresses of this host, most useful to peers first.
 *
 * Order: IPv4, IPv6, link-local IPv6, loopback; the kernel's order within each kind.
 *
 * returns  number written, at most max
 */
int trib_own_ips(struct trib_own_ip *out, int max);

/** trib_net_usable - return true if peers can reach this local address of `family`:
 * neither loopback nor link-local, on an interface that is up. */
bool trib_net_usable(const struct ifaddrs *i, int family, uint8_t ip_out[16]);

/** trib_net_own - list at most max addresses where peers can reach this host: IPv4
 * first, neither loopback nor link-local. */
int trib_net_own(uint8_t (*ip_out)[16], int max);

/** trib_net_loopback_up - return false if "lo" of this network namespace is down. */
bool trib_net_loopback_up(void);

/* The bootstrap connection: local and remote address, and the round-trip time when it
 * was established. All zero: unknown. */
struct trib_net_met {
    uint8_t own[16];
    uint8_t root[16];
    uint32_t round_trip_us;
};

/** trib_net_met_by - fill *out from a connected TCP socket. */
void trib_net_met_by(int fd, struct trib_net_met *out);

/* Networks chosen by the user with net=10.0.0.0/8,ib0. None: all networks. */
struct trib_net_choice {
    int n;
    struct {
        uint8_t ip[16];
        int prefix;
        char name[IF_NAMESIZE]; /* "": ip and prefix apply */
    } of[TRIB_NET_CHOICES];
    char text[TRIB_NET_TEXT_BYTES];
};

/**
 * trib_net_choose - parse a list of networks and interface names.
 *
 * owner    owner of the parameter; prefix of the error message
 * text     "" for all networks
 * errors   TRIB_ERR_CONFIG: not a network, too many, or no local address matches; then
 *          the message lists this host's networks
 */
trib_status_t trib_net_choose(const char *owner, const char *text,
                              struct trib_net_choice *out, struct trib_error *err);

/** trib_net_chosen - return true if a local address matches a chosen network. */
bool trib_net_chosen(const struct trib_net_choice *choice,
                     const struct trib_own_ip *own);

#endif
