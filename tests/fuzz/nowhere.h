/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For targets whose inputs may name any network address: connections leave this process
 * only to sockets of the file system. A connection to another address is refused, as by
 * a host without a listener.
 */
#ifndef TESTS_FUZZ_NOWHERE_H
#define TESTS_FUZZ_NOWHERE_H

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int connect(int fd, const struct sockaddr *to, socklen_t bytes)
{
    if (to->sa_family == AF_UNIX)
        return (int)syscall(SYS_connect, fd, to, bytes);
    errno = ECONNREFUSED;
    return -1;
}

ssize_t sendto(int fd, const void *what, size_t n, int flags, const struct sockaddr *to,
               socklen_t bytes)
{
    if (!to || to->sa_family == AF_UNIX)
        return (ssize_t)syscall(SYS_sendto, fd, what, n, flags, to, bytes);
    errno = ECONNREFUSED;
    return -1;
}

#endif
