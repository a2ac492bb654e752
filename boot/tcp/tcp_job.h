/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The job that meets at a TCP server: who has joined, what they exchange, who is to
 * blame. Private to boot/tcp/tcp_job.c, which judges, and boot/tcp/tcp_server.c, which
 * has the sockets and the clock.
 */
#ifndef BOOT_TCP_TCP_JOB_H
#define BOOT_TCP_TCP_JOB_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/accept.h"
#include "base/stranger.h"
#include "boot/tcp/tcp_proto.h"
#include "boot/tcp/tcp_server.h"

#define TRIB_TCP_STRANGERS_MAX 64 /* that have not said hello; the oldest goes first \
                                   */
#define TRIB_TCP_MS UINT64_C(1000000)
#define TRIB_TCP_FAREWELL_MS 1000 /* time for ranks that come only to hear of an
                                   * error */

/*
 * The messages that a rank has yet to get, in this order. Bits instead of a queue: each
 * is sent at most once at a time, so nothing grows with a rank that does not read.
 */
enum {
    TRIB_TELL_WELCOME = 1,
    TRIB_TELL_RESULT = 2,
    TRIB_TELL_FAIL = 4,
    TRIB_TELL_TICK = 8,
    TRIB_TELL_CHALLENGE = 16, /* goes before all others, to a connection that is still a
                               * stranger */
};

struct trib_tcp_conn {
    int fd; /* -1: this place is free */
    bool own;
    bool hello; /* `who` is known; who.rank may be out of range after a failure */
    bool challenged; /* it has said hello, which counts once it has proved it */
    struct trib_tcp_hello said; /* hello of a connection that was challenged */
    uint8_t nonce[TRIB_NONCE_BYTES]; /* nonce of the challenge */
    uint8_t ip[16]; /* address of its other end; all zero: not known */
    struct trib_rank_name who;
    uint64_t heard; /* when something came last; of a stranger, when it connected */
    uint32_t exchange; /* the last one that it has contributed to */
    unsigned tell;
    const uint8_t *out; /* being written: into small, or the shared result */
    size_t out_len;
    size_t in_len;
    uint8_t in[TRIB_TCP_SMALL_BYTES];
    uint8_t small[TRIB_TCP_SMALL_BYTES];
};

struct trib_tcp_server {
    struct trib_tcp_server_opts opts;
    pthread_t thread;
    int size;
    int joined;
    struct trib_tcp_conn *conns; /* trib_tcp_conns of them */
    struct trib_tcp_conn **ranks; /* indexed by rank; NULL: has not joined */
    bool *gone; /* indexed by rank: its connection has closed */
    bool *told; /* indexed by rank: it has got the failure */
    bool *missing; /* indexed by rank, for sentences */
    struct pollfd *polls; /* open descriptors alone: poll() takes no more */
    int *polled; /* place of the listener or connection of each of `polls` */
    int n_polled_listeners; /* number of listeners, which come first */
    struct trib_accept_pause pause; /* pause of the listeners */
    struct trib_strangers strangers; /* strangers that have come to the listeners */
    char note[192]; /* a stranger's mistake that a rank may have made; "": none */

    uint32_t exchange; /* the present one */
    int contributed; /* ranks that have, to the present one */
    char phase[TRIB_BOOT_PHASE_MAX];
    uint32_t bytes;
    /*
     * Results as frames, in turn: a slow rank may still be sent result n while n+1 is
     * collected, but n+2 begins only when all have read n.
     */
    uint8_t *results[2];
    size_t result_len[2];

    bool failed;
    struct trib_tcp_failure failure;
    bool leaving; /* rank 0 has closed its end */
    uint64_t farewell;
    uint64_t deadline; /* deadline of the present exchange */
    uint64_t now;
    uint64_t ticked;
};

/* Places for connections. */
static inline int trib_tcp_conns(const struct trib_tcp_server *s)
{
    return s->size + TRIB_TCP_STRANGERS_MAX;
}

/** trib_tcp_fail_all - end the start for all ranks; the first reason stands. */
void trib_tcp_fail_all(struct trib_tcp_server *s, trib_status_t status, const char *fmt,
                       ...) __attribute__((format(printf, 3, 4)));

/** trib_tcp_take_frame - take a frame of a connection, which may be closed
 * afterwards. */
void trib_tcp_take_frame(struct trib_tcp_server *s, struct trib_tcp_conn *c,
                         const struct trib_tcp_frame *frame);

/** trib_tcp_not_a_frame - it has sent what trib_tcp_parse refused with `status`. */
void trib_tcp_not_a_frame(struct trib_tcp_server *s, struct trib_tcp_conn *c,
                          trib_status_t status);

/** trib_tcp_lose - a connection has ended; that of a rank may end the start. */
void trib_tcp_lose(struct trib_tcp_server *s, struct trib_tcp_conn *c);

/**
 * trib_tcp_stranger - warn of a connection that does not belong to the job, and close
 * it.
 *
 * what     a clause about it
 * notable  perhaps a rank with wrong settings: said again where ranks do not come in
 *          time
 */
void trib_tcp_stranger(struct trib_tcp_server *s, struct trib_tcp_conn *c, bool notable,
                       const char *what);

/** trib_tcp_drop - close a connection that nobody will miss. */
void trib_tcp_drop(struct trib_tcp_conn *c);

/** trib_tcp_busy - is somebody needed? Before all have joined, and in an exchange. */
bool trib_tcp_busy(const struct trib_tcp_server *s);

/** trib_tcp_close_listeners - nobody else may come. */
void trib_tcp_close_listeners(struct trib_tcp_server *s);

#endif
