/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP connections to a process with several addresses, some of which may be
 * unreachable.
 *
 * Attempts start at short intervals and run in parallel; the first to succeed wins and
 * the others are closed. An address that never answers thus costs one interval, not the
 * timeout of a whole attempt.
 */
#ifndef BASE_DIAL_H
#define BASE_DIAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/idle_function.h"

#define TRIB_DIAL_MAX 64 /* addresses */
#define TRIB_DIAL_STEP_MS 200 /* interval between the starts of two attempts */
#define TRIB_DIAL_ATTEMPT_MS 2000 /* timeout for one address */

struct trib_dial_to {
    struct sockaddr_storage at;
    socklen_t len;
    int error; /* out: errno of the attempt; 0: not started, or not finished */
};

struct trib_dial {
    struct trib_dial_to *to; /* addresses, in the order to try them */
    int n;                   /* at most TRIB_DIAL_MAX */
    int attempt_ms;          /* 0: TRIB_DIAL_ATTEMPT_MS */
    uint64_t deadline;       /* deadline of all attempts, on the clock of
                              * trib_now_ns; 0: none */
    bool reuse;   /* SO_REUSEADDR, so the socket does not block a listener on its
                   * port */
    int segment;  /* TCP_MAXSEG; 0: kernel default */
    const char *loopback; /* congestion control within the host; NULL: kernel default */
    struct trib_idle *idle; /* called while waiting; or NULL */
};

/**
 * trib_dial - return the first connection that succeeds; signals do not interrupt it.
 *
 * which_out  index of the connected address; -1: none
 * returns    a non-blocking socket, or -1 with the errno of the last finished attempt:
 *            ETIMEDOUT, ECONNREFUSED, …; EADDRNOTAVAIL if there is no address;
 *            ECANCELED if the caller gives up
 */
int trib_dial(const struct trib_dial *dial, int *which_out);

#endif
