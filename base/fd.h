/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors that the library makes lie above 2.
 *
 * The kernel gives out the lowest free number. In a program that has closed its
 * standard output, a socket or shared memory would become descriptor 1, and the next
 * line that the program prints would land in it. So each call that makes a descriptor
 * goes through trib_fd_keep; scripts/lint refuses the bare calls.
 */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <stdio.h>

/**
 * trib_fd_keep - move a descriptor that was just made above 2.
 *
 *     int fd = trib_fd_keep(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
 *
 * fd       -1 is handed through with its errno
 * returns  the descriptor, the same where it lies above 2 already; it is closed when a
 *          program is executed if it had to move
 * thread   any
 * errors   -1 and errno; the low descriptor is closed
 */
int trib_fd_keep(int fd);

/** trib_fd_pipe - pipe2, with both ends above 2. Errors: -1 and errno. */
int trib_fd_pipe(int ends[2], int flags);

/** trib_fd_pair - two connected UNIX sockets above 2. Errors: -1 and errno. */
int trib_fd_pair(int ends[2], int type);

/**
 * trib_fd_create - a file to be written, emptied first, whose descriptor lies above 2.
 *
 * owner    the caller: fclose
 * errors   NULL and errno
 */
FILE *trib_fd_create(const char *path);

/**
 * trib_fd_guard - occupy those of descriptors 0 to 2 that are closed.
 *
 * It is called before another library (UCX, verbs, PMIx) opens descriptors of its own,
 * which trib_fd_keep cannot move. The occupants can neither be read nor written: to the
 * program they behave as a closed descriptor does (EBADF), close and dup2 replace them,
 * and programs that it executes do not get them. They stay, because such libraries open
 * sockets at any later time and in threads of their own, and because a descriptor that
 * is never taken back cannot be taken away from a thread of the program that reused it.
 *
 * thread   any; errno is kept
 */
void trib_fd_guard(void);

#endif
