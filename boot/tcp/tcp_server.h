/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The meeting of ranks over TCP: a thread of rank 0 collects and hands out.
 *
 * It is a thread, not work inside rank 0's calls, so that it answers at any time: a
 * rank that joins is told at once what is wrong with it, and silence means that rank
 * 0's process is stopped, never that it is busy. It owns all its state; rank 0 itself
 * is a client like any other, over a pair of sockets.
 */
#ifndef BOOT_TCP_TCP_SERVER_H
#define BOOT_TCP_TCP_SERVER_H

#include "base/sockets.h"
#include "boot/tcp/tcp_proto.h"

struct trib_log;
struct trib_error;
struct trib_tcp_server;

#define TRIB_TCP_ABORT_MS 20 /* time to pass on that a caller gives up, who gets 50 */
#define TRIB_TCP_TICK_MS 200 /* interval between two signs of life, on both sides */
#define TRIB_TCP_SILENT_MS 1000 /* a shorter silence means nothing */
#define TRIB_TCP_GAP_MS 1000 /* a pause of our own that no scheduler explains */

struct trib_tcp_server_opts {
    struct trib_tcp_hello self; /* rank 0: what a WELCOME says */
    int listeners[TRIB_TCP_LISTENERS_MAX];
    int n_listeners;
    unsigned port; /* port of all of them, for warnings */
    int own; /* rank 0's connection, the server's end */
    int boot_timeout_ms;
    int stop_timeout_ms;
    const struct trib_log *log;
    struct trib_secret secret; /* secret of the job; not set: every HELLO is believed */
};

/**
 * trib_tcp_server_start - the sockets belong to the server, also where it fails.
 */
trib_status_t trib_tcp_server_start(const struct trib_tcp_server_opts *opts,
                                    struct trib_error *err,
                                    struct trib_tcp_server **out);

/**
 * trib_tcp_server_stop - wait until the others have what is theirs; NULL is allowed.
 *
 * Rank 0 has closed its end before. Takes at most stop_timeout_ms, after an error 1 s.
 */
void trib_tcp_server_stop(struct trib_tcp_server *server);

#endif
