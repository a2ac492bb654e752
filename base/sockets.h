/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets of the TCP boot: listening and connecting.
 */
#ifndef BASE_SOCKETS_H
#define BASE_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_idle;

struct trib_error;

#define TRIB_TCP_LISTENERS_MAX 4

struct trib_tcp_root {
    char host[256];
    char also[768]; /* other names and addresses of the host, comma-separated; "":
                     * none */
    char port[8];
    const char *launcher; /* launcher that chose the root, e.g. "Slurm"; NULL: the
                           * user, by TRIB_ROOT */
};

/** trib_tcp_root_from - return the origin of the root for error messages:
 * "TRIB_ROOT". */
const char *trib_tcp_root_from(const struct trib_tcp_root *root, char text[64]);

/** trib_tcp_root_parse - parse "host:port", "1.2.3.4:port", "[::1]:port", or a host
 * with several addresses, "host,1.2.3.4,[::1]:port"; false: none of these. */
bool trib_tcp_root_parse(const char *text, struct trib_tcp_root *out);

/**
 * trib_sockets_bind - listen at the root's address.
 *
 * A numeric address and "localhost" are bound as given. Other names, or several, bind
 * every address of this host, because /etc/hosts often maps a host's own name to
 * 127.0.1.1.
 *
 * idle      called while the port is in use, for up to 1 s; or NULL
 * fds_out   non-blocking; *n_out of them
 * returns   0, or the errno: EADDRINUSE, EADDRNOTAVAIL (not a local address), …
 */
int trib_sockets_bind(const struct trib_tcp_root *root, struct trib_idle *idle,
                      int fds_out[TRIB_TCP_LISTENERS_MAX], int *n_out);

/**
 * trib_sockets_listen - trib_sockets_bind for rank 0, with an error message.
 *
 * errors    TRIB_ERR_BOOT; TRIB_ERR_ABORTED: the caller gave up
 */
trib_status_t trib_sockets_listen(const struct trib_tcp_root *root,
                                  struct trib_idle *idle, struct trib_error *err,
                                  int fds_out[TRIB_TCP_LISTENERS_MAX], int *n_out);

/**
 * trib_sockets_connect - try each address of the root once, at intervals of 200 ms; the
 * first success wins. Names are resolved only if no listed address connects.
 *
 * deadline  on the clock of trib_now_ns, also for name resolution; at most 2 s per
 *           address
 * idle      called while waiting; or NULL
 * why       receives the cause of a failure; at least 128 bytes
 * returns   a non-blocking socket, or -1 with the errno of the last address (0: the
 *           name could not be resolved)
 */
int trib_sockets_connect(const struct trib_tcp_root *root, uint64_t deadline,
                         struct trib_idle *idle, char *why, size_t bytes);

/** trib_sockets_sent - return true if the peer's kernel has acknowledged all written
 * data. */
bool trib_sockets_sent(int fd);

#endif
