/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets of the TCP boot: where to listen, how to connect.
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
    char also[768]; /* other names and addresses of the same host, with commas; "":
                     * none */
    char port[8];
    const char *launcher; /* launcher that chose it, "Slurm"; NULL: the user did, by
                           * TRIB_ROOT */
};

/** trib_tcp_root_from - the origin of the root, for sentences: "TRIB_ROOT". */
const char *trib_tcp_root_from(const struct trib_tcp_root *root, char text[64]);

/** trib_tcp_root_parse - "host:port", "1.2.3.4:port", "[::1]:port", and of a host with
 * several addresses "host,1.2.3.4,[::1]:port"; false: not so. */
bool trib_tcp_root_parse(const char *text, struct trib_tcp_root *out);

/**
 * trib_tcp_bind - listen where the root says.
 *
 * A numeric address and "localhost" are listened at as they are. Other names mean every
 * address of this host, as do several, because /etc/hosts often maps a host's own name
 * to 127.0.1.1.
 *
 * fds_out   non-blocking; *n_out of them
 * returns   0, or the errno: EADDRINUSE, EADDRNOTAVAIL (no address of this host), …
 */
int trib_tcp_bind(const struct trib_tcp_root *root,
                  int fds_out[TRIB_TCP_LISTENERS_MAX], int *n_out);

/**
 * trib_tcp_listen - trib_tcp_bind as rank 0 does it, with a sentence where it fails.
 *
 * errors    TRIB_ERR_BOOT
 */
trib_status_t trib_tcp_listen(const struct trib_tcp_root *root, struct trib_error *err,
                              int fds_out[TRIB_TCP_LISTENERS_MAX], int *n_out);

/**
 * trib_tcp_connect - one attempt at each address of the root; they begin 200 ms after
 * one another, and the first that succeeds counts. A name is looked up where no address
 * of the list leads to the host.
 *
 * deadline  on the clock of trib_now_ns, also for resolving a name; at most 2 s are
 *           spent on one address
 * idle      called meanwhile; or NULL
 * why       receives why it failed, at least 128 bytes
 * returns   a non-blocking socket, or -1 with the last address' errno (0: the name
 * could not be resolved)
 */
int trib_tcp_connect(const struct trib_tcp_root *root, uint64_t deadline,
                     struct trib_idle *idle, char *why, size_t bytes);

/** trib_tcp_sent - has the peer's kernel all that was written to the socket? */
bool trib_tcp_sent(int fd);

#endif
