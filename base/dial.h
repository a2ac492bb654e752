/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connecting side of a TCP connection. The peer may have several addresses, some of
 * them unreachable. The calls connect, pause before another try, and exchange the first
 * messages. All of them block until a deadline.
 *
 * Attempts start at short intervals and run in parallel; the first to succeed wins and
 * the others are closed. An address that never answers thus costs one interval, not the
 * timeout of a whole attempt.
 */
#ifndef BASE_DIAL_H
#define BASE_DIAL_H

#include <stdbool.h>
#include <stddef.h>
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
    int n; /* at most TRIB_DIAL_MAX */
    int attempt_ms; /* 0: TRIB_DIAL_ATTEMPT_MS */
    uint64_t deadline; /* deadline of all attempts, on the clock of
                              * trib_now_ns; 0: none */
    bool reuse; /* SO_REUSEADDR, so the socket does not block a listener on its
                   * port */
    int segment; /* TCP_MAXSEG; 0: kernel default */
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

/* Pauses between two calls of trib_dial; each is longer than the one before. */
struct trib_dial_retry {
    int ms; /* mean of the next pause */
    int most_ms;
    uint64_t random; /* any number but 0; other processes should have another one */
};

/** trib_dial_pause - sleep before the next try, not beyond the deadline, with 50 %
 * jitter, so that not all processes connect at once. */
void trib_dial_pause(struct trib_dial_retry *retry, uint64_t deadline,
                     struct trib_idle *idle);

/* A connected socket. */
struct trib_dialled {
    int fd;
    uint64_t deadline; /* of each call */
    struct trib_idle *idle; /* called while waiting; or NULL */
    /* Checked every TRIB_DIAL_ALIVE_MS while waiting; or NULL. Return false to stop,
     * as at the deadline. */
    bool (*is_alive)(void *arg);
    void *arg;
};

#define TRIB_DIAL_ALIVE_MS 25

/**
 * trib_dial_receive - receive exactly n bytes; signals do not interrupt it.
 *
 * returns  false with errno: 0: the peer has closed the connection; ETIMEDOUT;
 *          ECANCELED if the idle function cancels; or as recv()
 */
bool trib_dial_receive(const struct trib_dialled *d, void *to, size_t n);

/** trib_dial_send - send all n bytes. Return values as trib_dial_receive, or as
 * send(). */
bool trib_dial_send(const struct trib_dialled *d, const void *from, size_t n);

#endif
