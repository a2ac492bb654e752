/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP connections to a process that has several addresses, of which some may lead
 * nowhere.
 *
 * The attempts begin a little after one another and go on side by side; the first that
 * succeeds is the connection, and the others end. So an address that never answers
 * costs one short step, not the whole time of an attempt.
 */
#ifndef BASE_DIAL_H
#define BASE_DIAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/idle_function.h"

#define TRIB_DIAL_MAX 64 /* addresses */
#define TRIB_DIAL_STEP_MS 200 /* interval between the beginnings of two attempts */
#define TRIB_DIAL_ATTEMPT_MS 2000 /* limit for one address */

struct trib_dial_to {
    struct sockaddr_storage at;
    socklen_t len;
    int error; /* out: errno of the attempt; 0: it was not begun, or has not ended */
};

struct trib_dial {
    struct trib_dial_to *to; /* addresses, in the order in which to try them */
    int n;                   /* at most TRIB_DIAL_MAX */
    int attempt_ms;          /* 0: TRIB_DIAL_ATTEMPT_MS */
    uint64_t deadline;       /* deadline of all attempts, on the clock of trib_now_ns;
                              * 0: none */
    bool reuse;   /* SO_REUSEADDR, lest the socket keep somebody from listening at its
                   * port */
    int segment;  /* TCP_MAXSEG; 0: the kernel's */
    const char *loopback; /* congestion control of connections within the host; NULL:
                           * the kernel's */
    struct trib_idle *idle; /* called meanwhile; or NULL */
};

/**
 * trib_dial - the first connection that comes about; signals do not end it early.
 *
 * which_out  the address that it leads to; -1: none
 * returns    a non-blocking socket, or -1 with the errno of the last attempt that
 *            ended: ETIMEDOUT, ECONNREFUSED, …; EADDRNOTAVAIL where there is no
 *            address; ECANCELED if the caller gives up
 */
int trib_dial(const struct trib_dial *dial, int *which_out);

#endif
