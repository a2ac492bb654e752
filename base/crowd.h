/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Count of unauthenticated connections per source address. A listener with too many
 * open connections evicts one from the source that has most, so a flood evicts its own
 * connections.
 */
#ifndef BASE_CROWD_H
#define BASE_CROWD_H

#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

#include "base/digest.h"

enum { TRIB_CROWDS = 1024 };

/* Connections per source; zero-initialised: none. Two sources may share a counter. */
struct trib_crowds {
    uint16_t n[TRIB_CROWDS];
};

/**
 * trib_crowd_source - return the source of a connection.
 *
 * All addresses of an IPv6 /64 are one source, as a host chooses its lower 64 bits
 * freely.
 *
 * ip       16 bytes as in base/addresses.h
 * seed     random, so an attacker cannot choose addresses that share a counter
 */
static inline uint64_t trib_crowd_source(const uint8_t ip[16], uint64_t seed)
{
    struct in6_addr six;

    memcpy(&six, ip, sizeof(six));
    return IN6_IS_ADDR_V4MAPPED(&six) ? trib_digest_seeded(ip + 12, 4, seed)
                                      : trib_digest_seeded(ip, 8, seed);
}

/** trib_crowds_add - count one connection of this source. */
static inline void trib_crowds_add(struct trib_crowds *crowds, uint64_t source)
{
    crowds->n[source % TRIB_CROWDS]++;
}

/** trib_crowds_size - return the number of counted connections of this source. */
static inline int trib_crowds_size(const struct trib_crowds *crowds, uint64_t source)
{
    return crowds->n[source % TRIB_CROWDS];
}

#endif
