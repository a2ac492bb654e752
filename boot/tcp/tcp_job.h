/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State of the job at a TCP server: joined ranks, exchanges, failures. Private to
 * boot/tcp/tcp_job.c, which makes the decisions, and boot/tcp/tcp_server.c, which has
 * the sockets and timers.
 */
#ifndef BOOT_TCP_TCP_JOB_H
#define BOOT_TCP_TCP_JOB_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/accept.h"
#include "base/unauthenticated.h"
#include "boot/tcp/tcp_proto.h"
#include "boot/tcp/tcp_server.h"

/* Slots for unauthenticated peers, besides one for each rank. */
#define TRIB_TCP_UNAUTHENTICATED_MAX 64
#define TRIB_TCP_MS UINT64_C(1000000)
/* Time for ranks that connect only to receive the error. */
#define TRIB_TCP_LINGER_MS 1000

/*
 * Messages pending for a rank, in this order. Bits instead of a queue: each message is
 * pending at most once, so a rank that does not read consumes no memory.
 */
enum {
    TRIB_SEND_WELCOME = 1,
    TRIB_SEND_RESULT = 2,
    TRIB_SEND_FAIL = 4,
    TRIB_SEND_TICK = 8,
    TRIB_SEND_CHALLENGE = 16, /* sent first, to a connection not yet authenticated */
};

struct trib_tcp_conn {
    int fd; /* -1: free slot */
    bool own;
    bool hello; /* `who` is known; who.rank may be out of range after a failure */
    struct trib_proof proof; /* begun: HELLO received; valid once proved */
    struct trib_tcp_hello said; /* HELLO of a challenged connection */
    struct trib_challenge challenge;
    uint8_t ip[16]; /* remote address; all zero: unknown */
    struct trib_rank_name who;
    uint64_t heard; /* time of the last received bytes; before HELLO, of the
                     * connection */
    uint32_t exchange; /* last exchange it contributed to */
    unsigned pending;
    const uint8_t *out; /* being sent: points into small, or to the shared result */
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
    bool *notified; /* indexed by rank: has received the failure */
    bool *missing; /* indexed by rank, for error messages */
    struct pollfd *polls; /* open descriptors only, as poll() limits their number */
    int *polled; /* index of the listener or connection of each of `polls` */
    int n_polled_listeners; /* number of listeners, which come first */
    struct trib_accept_pause pause; /* pause of the listeners */
    struct trib_unauthenticated unauthenticated; /* at the listeners */
    char note[192]; /* error of an unauthenticated peer that may be a rank; "": none */

    uint32_t exchange; /* number of the current exchange */
    int contributed; /* ranks that contributed to it */
    char phase[TRIB_BOOT_PHASE_MAX];
    uint32_t bytes;
    /*
     * Results as frames, used alternately: a slow rank may still be receiving result n
     * while n+1 is collected, but n+2 begins only after all have read n.
     */
    uint8_t *results[2];
    size_t result_len[2];

    bool failed;
    struct trib_tcp_failure failure;
    bool leaving; /* rank 0 has closed its end */
    uint64_t linger_until;
    uint64_t deadline; /* deadline of the current exchange */
    uint64_t now;
    uint64_t ticked;
};

/* Return the number of connection slots. */
static inline int trib_tcp_conns(const struct trib_tcp_server *s)
{
    return s->size + TRIB_TCP_UNAUTHENTICATED_MAX;
}

/** trib_tcp_fail_all - fail the boot on all ranks; the first reason is kept. */
void trib_tcp_fail_all(struct trib_tcp_server *s, trib_status_t status, const char *fmt,
                       ...) __attribute__((format(printf, 3, 4)));

/** trib_tcp_take_frame - handle a frame of a connection, which may be closed
 * afterwards. */
void trib_tcp_take_frame(struct trib_tcp_server *s, struct trib_tcp_conn *c,
                         const struct trib_tcp_frame *frame);

/** trib_tcp_not_a_frame - handle bytes that trib_tcp_parse rejected with `status`. */
void trib_tcp_not_a_frame(struct trib_tcp_server *s, struct trib_tcp_conn *c,
                          trib_status_t status);

/** trib_tcp_lose - handle a closed connection; that of a rank may fail the boot. */
void trib_tcp_lose(struct trib_tcp_server *s, struct trib_tcp_conn *c);

/**
 * trib_tcp_reject - warn about a connection outside the job, and close it.
 *
 * what     predicate of the message
 * notable  may be a rank with wrong settings: repeated if ranks time out
 */
void trib_tcp_reject(struct trib_tcp_server *s, struct trib_tcp_conn *c, bool notable,
                     const char *what);

/** trib_tcp_busy - return true before all have joined, and during an exchange. */
bool trib_tcp_busy(const struct trib_tcp_server *s);

/** trib_tcp_close_listeners - accept no further connections. */
void trib_tcp_close_listeners(struct trib_tcp_server *s);

#endif
