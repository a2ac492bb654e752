/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP boot server: a thread of rank 0 that collects and distributes contributions.
 *
 * It is a thread, and not run inside rank 0's calls, so that it always responds. A
 * joining rank learns of errors at once, and silence means that rank 0's process is
 * stopped, never busy. The thread owns all its state; rank 0 itself is an ordinary
 * client, over a socket pair.
 */
#ifndef BOOT_TCP_TCP_SERVER_H
#define BOOT_TCP_TCP_SERVER_H

#include "base/sockets.h"
#include "boot/tcp/tcp_proto.h"

struct trib_log;
struct trib_error;
struct trib_tcp_server;

/* Time to report that a caller gives up; the caller has 50 ms. */
#define TRIB_TCP_ABORT_MS 20
#define TRIB_TCP_TICK_MS 200 /* interval between two TICKs, in both directions */
#define TRIB_TCP_SILENT_MS 1000 /* shorter silences are ignored */
#define TRIB_TCP_GAP_MS 1000 /* a gap in our own execution too long for scheduling */

struct trib_tcp_server_opts {
    struct trib_tcp_hello self; /* rank 0: contents of a WELCOME */
    int listeners[TRIB_TCP_LISTENERS_MAX];
    int n_listeners;
    unsigned port; /* port of all listeners, for warnings */
    int own; /* server end of rank 0's socket pair */
    int boot_timeout_ms;
    int stop_timeout_ms;
    const struct trib_log *log;
    struct trib_secret secret; /* the job's secret; not set: every HELLO is trusted */
};

/**
 * trib_tcp_server_start - start the server, which takes ownership of the sockets, even
 * on failure.
 */
trib_status_t trib_tcp_server_start(const struct trib_tcp_server_opts *opts,
                                    struct trib_error *err,
                                    struct trib_tcp_server **out);

/**
 * trib_tcp_server_stop - wait until all pending data is delivered; NULL is allowed.
 * Rank 0 has closed its end before. Takes at most stop_timeout_ms, after an error 1 s.
 */
void trib_tcp_server_stop(struct trib_tcp_server *server);

#endif
