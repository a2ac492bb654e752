/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keep the library's descriptors above 2.
 *
 * The kernel assigns the lowest free number. If a program has closed its standard
 * output, a socket or shared memory would become descriptor 1 and receive the next
 * printed line. So each call that creates a descriptor goes through trib_fd_keep;
 * scripts/lint rejects bare calls.
 */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <stdio.h>

/**
 * trib_fd_keep - move a new descriptor above 2.
 *
 *     int fd = trib_fd_keep(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
 *
 * fd       -1 is passed through with its errno
 * returns  the descriptor, unchanged if already above 2; a moved one is close-on-exec
 * thread   any
 * errors   -1 and errno; the low descriptor is closed
 */
int trib_fd_keep(int fd);

/** trib_fd_pipe - pipe2 with both ends above 2. Errors: -1 and errno. */
int trib_fd_pipe(int ends[2], int flags);

/** trib_fd_pair - create two connected UNIX sockets above 2. Errors: -1 and errno. */
int trib_fd_pair(int ends[2], int type);

/**
 * trib_fd_create - create or truncate a file for writing; its descriptor is above 2.
 *
 * owner    the caller: fclose
 * errors   NULL and errno
 */
FILE *trib_fd_create(const char *path);

/**
 * trib_fd_guard - occupy descriptors 0 to 2 if closed.
 *
 * Called before another library (UCX, verbs, PMIx) opens descriptors, which
 * trib_fd_keep cannot move. The placeholders can be neither read nor written, so they
 * behave like closed descriptors (EBADF). close and dup2 replace them, and exec closes
 * them. They stay open because such libraries open sockets at any time, in their own
 * threads. Closing them later could also hit a descriptor that a thread of the program
 * has reused.
 *
 * thread   any; preserves errno
 */
void trib_fd_guard(void);

#endif
