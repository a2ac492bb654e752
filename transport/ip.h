/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IP addresses as transports carry them: 16 bytes, IPv4 mapped into IPv6.
 */
#ifndef TRANSPORT_IP_H
#define TRANSPORT_IP_H

#include <stdint.h>
#include <sys/socket.h>

#define TRIB_IP_TEXT 48

struct trib_ip {
    uint8_t bytes[16];
};

/**
 * trib_ip_own - addresses of this host that peers may use; IPv4 first.
 *
 * Those of interfaces that are up, without loopback and link-local ones.
 * returns  how many there are, at most `max`
 */
int trib_ip_own(struct trib_ip *out, int max);

/** trib_ip_socket - as the socket calls want it; returns the length of *out. */
socklen_t trib_ip_socket(const struct trib_ip *ip, uint16_t port,
                         struct sockaddr_storage *out);

/** trib_ip_text - "10.0.0.1" or "fd00::1"; returns text. */
char *trib_ip_text(const struct trib_ip *ip, char text[TRIB_IP_TEXT]);

#endif
