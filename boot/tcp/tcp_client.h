/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's connection to the boot server: connecting, sending, and rank 0's responses.
 *
 * tcp_boot.c has the exchange and the timers.
 *
 * Thread: the holder of `lock`, or the caller's thread while `busy` is set.
 */
#ifndef BOOT_TCP_TCP_CLIENT_H
#define BOOT_TCP_TCP_CLIENT_H

#include <pthread.h>
#include <stdbool.h>

#include "base/dial.h"
#include "base/idle_function.h"
#include "base/sockets.h"
#include "boot/boot.h"
#include "boot/tcp/tcp_proto.h"
#include "boot/tcp/tcp_server.h"

#define TRIB_TCP_RETRY_MS 20 /* pause after the first connection attempt; it grows */
#define TRIB_TCP_RETRY_MOST_MS 1000

struct trib_tcp_client {
    struct trib_boot boot;
    struct trib_tcp_root root;
    struct trib_tcp_hello hello;
    bool is_newcomer; /* a newcomer at a listener: boot/newcomers.h; hello.size is 0 */
    struct trib_rank_name server_name; /* rank 0, if known */
    struct trib_tcp_server *server; /* on rank 0, else NULL */
    int fd; /* -1: none */
    int boot_timeout_ms;
    int stop_timeout_ms;
    const struct trib_log *log;
    struct trib_error *err;
    struct trib_idle *idle;
    uint32_t exchange;
    struct trib_proof proof; /* TRIB_PROOF_NEW: no secret; or on rank 0 */
    bool welcome; /* the server accepted our HELLO */
    bool sent_failure; /* fail() has been called */
    uint64_t heard; /* time of rank 0's last bytes, or of the connection */
    uint64_t deadline; /* last resort; the server decides earlier */
    uint64_t ticked;
    uint64_t now;
    struct trib_dial_retry retry;

    uint8_t *in;
    size_t in_len;
    size_t in_cap;
    uint8_t out[3 * TRIB_TCP_SMALL_BYTES]; /* a HELLO, a contribution, a failure */
    size_t out_len;

    /* The ticker thread. busy: the caller's thread owns fd and out. */
    pthread_t ticker;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool busy;
    bool stop;
};

/* State of one exchange. */
struct trib_tcp_exchange {
    const char *phase;
    size_t bytes; /* bytes of all ranks */
    void *out;
    bool proves; /* ends with the server's proof */
    bool done;
};

/** trib_tcp_client_put_* - append a frame to the output. */
void trib_tcp_client_put_tick(struct trib_tcp_client *t);
void trib_tcp_client_put_hello(struct trib_tcp_client *t);
void trib_tcp_client_put_gather(struct trib_tcp_client *t,
                                const struct trib_tcp_gather *mine);

/** trib_tcp_client_flush - send as much as the socket accepts; return 0, or the errno
 * of a lost connection. */
int trib_tcp_client_flush(struct trib_tcp_client *t);

/**
 * trib_tcp_client_connect - connect to rank 0 and send HELLO, before the deadline.
 *
 * again    there was a connection before: a refusing server has exited
 */
trib_status_t trib_tcp_client_connect(struct trib_tcp_client *t, bool again);

/** trib_tcp_client_parse - handle received frames up to the end of the exchange; the
 * rest belongs to the next one. */
trib_status_t trib_tcp_client_parse(struct trib_tcp_client *t,
                                    struct trib_tcp_exchange *q);

/** trib_tcp_client_no_answer - fail because rank 0 was not found in time. */
trib_status_t trib_tcp_client_no_answer(struct trib_tcp_client *t, const char *why);

/** trib_tcp_client_gives_up - fail because the caller gave up. */
trib_status_t trib_tcp_client_gives_up(struct trib_tcp_client *t, const char *phase);

/** trib_tcp_client_lost - fail because the connection closed. */
trib_status_t trib_tcp_client_lost(struct trib_tcp_client *t,
                                   const struct trib_tcp_exchange *q);

#endif
