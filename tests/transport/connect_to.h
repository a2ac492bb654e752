/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A TCP connection to one port, made by hand.
 */
#ifndef TESTS_TRANSPORT_CONNECT_TO_H
#define TESTS_TRANSPORT_CONNECT_TO_H

#include "base/addresses.h"
#include "base/dial.h"
#include "base/time.h"

/* A non-blocking connection, or -1 and errno: ETIMEDOUT at the deadline. */
static inline int connect_to(const uint8_t ip[16], uint16_t port, uint64_t deadline)
{
    struct trib_dial_to to;
    struct trib_dial dial = {.to = &to,
                             .n = 1,
                             .deadline = deadline,
                             .attempt_ms = trib_deadline_left_ms(deadline) + 1};
    int which;

    to.len =
        trib_net_sockaddr(ip, port, trib_net_is_v4(ip) ? AF_INET : AF_INET6, &to.at);
    return trib_dial(&dial, &which);
}

#endif
