/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IP addresses of this host, and which of them a user has chosen.
 *
 * An address has 16 bytes: an IPv4 address is mapped into IPv6. A link-local IPv6
 * address means something on one link only, so here it carries the number of that
 * interface in its bytes 4 to 7, which are zero on the wire.
 */
#ifndef BASE_ADDRESSES_H
#define BASE_ADDRESSES_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <tributary/status.h>

#define TRIB_IP_TEXT_BYTES 64 /* "fe80::1%eth0" with its zero */
#define TRIB_OWN_IPS_MAX 256 /* most addresses looked at; hosts of many containers have
                              * most */
#define TRIB_NET_CHOICES 8
#define TRIB_NET_TEXT_BYTES 256

struct ifaddrs;
struct trib_error;

extern const uint8_t trib_net_loopback[16]; /* 127.0.0.1 */

/** trib_net_sockaddr - an address as connect and sendto of a family take it. */
socklen_t trib_net_sockaddr(const uint8_t ip[16], uint16_t port, int family,
                            struct sockaddr_storage *out);

/** trib_net_ip - the address in a sockaddr of IPv4 or IPv6. */
void trib_net_ip(const struct sockaddr *from, uint8_t ip_out[16]);

/** trib_net_port - the port in a sockaddr of IPv4 or IPv6. */
uint16_t trib_net_port(const struct sockaddr *from);

/** trib_net_is_v4 - true if the address is a mapped IPv4 address. */
bool trib_net_is_v4(const uint8_t ip[16]);

/** trib_net_is_link_local - true for IPv6 addresses that hold on one link only. */
bool trib_net_is_link_local(const uint8_t ip[16]);

/** trib_net_is_loopback - true for 127.0.0.0/8 and ::1. */
bool trib_net_is_loopback(const uint8_t ip[16]);

/** trib_net_is_set - true unless all bytes are zero, which stands for "not known". */
bool trib_net_is_set(const uint8_t ip[16]);

/** trib_net_set_link - the interface of a link-local address; 0: none, as on the
 * wire. */
void trib_net_set_link(uint8_t ip[16], uint32_t link);

/** trib_net_text - "10.0.0.1" or "fe80::1%eth0"; TRIB_IP_TEXT_BYTES hold each. */
void trib_net_text(const uint8_t ip[16], char *text, unsigned bytes);

/** trib_net_common_bits - the number of leading bits that two addresses have in
 * common. */
int trib_net_common_bits(const uint8_t a[16], const uint8_t b[16]);

/* An address of an interface of this host that is up. */
struct trib_own_ip {
    uint8_t ip[16];
    uint8_t prefix; /* bits of its subnet, of 128 */
    uint32_t link;  /* number of the interface */
    char name[IF_NAMESIZE];
};

/**
 * trib_own_ips - all addresses of this host, by their use to others: IPv4, IPv6,
 * link-local IPv6, loopback; each kind in the kernel's order.
 *
 * returns  how many were written, at most max
 */
int trib_own_ips(struct trib_own_ip *out, int max);

/** trib_net_usable - true if peers may use this address of `family` of this host:
 * neither loopback nor link-local, on an interface that is up. */
bool trib_net_usable(const struct ifaddrs *i, int family, uint8_t ip_out[16]);

/** trib_net_own - the addresses under which peers may find this host, at most max of
 * them; IPv4 first, neither loopback nor link-local. */
int trib_net_own(uint8_t (*ip_out)[16], int max);

/** trib_net_loopback_up - false if the interface "lo" of this name space is down. */
bool trib_net_loopback_up(void);

/* The connection by which the ranks met: its local address, that of the other end, and
 * how long a round trip took when it was made. All zero: not known. */
struct trib_net_met {
    uint8_t own[16];
    uint8_t root[16];
    uint32_t round_trip_us;
};

/** trib_net_met_by - fill in all of it from a connected TCP socket. */
void trib_net_met_by(int fd, struct trib_net_met *out);

/** trib_net_round_trip_us - as the kernel measures it on a connected TCP socket: of the
 * handshake, if nothing was sent yet, in which no process has a part; 0: not known. */
uint32_t trib_net_round_trip_us(int fd);

/* Networks that a user has chosen with net=10.0.0.0/8,ib0. None: all of them. */
struct trib_net_choice {
    int n;
    struct {
        uint8_t ip[16];
        int prefix;
        char name[IF_NAMESIZE]; /* "" where ip and prefix count */
    } of[TRIB_NET_CHOICES];
    char text[TRIB_NET_TEXT_BYTES];
};

/**
 * trib_net_choose - read a list of networks and names of interfaces.
 *
 * owner    whose parameter it is: begins the sentence of an error
 * text     "" for all networks
 * errors   TRIB_ERR_CONFIG: no network, too many, or no address of this host is of any;
 *          then the sentence lists those that this host has
 */
trib_status_t trib_net_choose(const char *owner, const char *text,
                              struct trib_net_choice *out, struct trib_error *err);

/** trib_net_chosen - true if an address of this host is of a chosen network. */
bool trib_net_chosen(const struct trib_net_choice *choice,
                     const struct trib_own_ip *own);

#endif
