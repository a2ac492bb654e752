/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log_write.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/quiet.h"

/*
 * O_NONBLOCK belongs to the open file description, which other processes share: setting
 * it would make their writes fail. Reopening the pipe or terminal creates a description
 * of our own. Return -1 if that is not permitted, or no descriptor is free.
 */
static int open_again(int fd)
{
    char path[40];
    const int flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return trib_fd_keep(open(path, flags));
}

static bool write_whole(int fd, const char *line, size_t bytes)
{
    return write(fd, line, bytes) == (ssize_t)bytes;
}

/* The write blocks only if another writer fills the pipe between the two calls. */
static bool write_if_ready(int fd, const char *line, size_t bytes)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    return poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) && write_whole(fd, line, bytes);
}

/* For a terminal that cannot be reopened, such as another user's: write byte by byte,
 * as a ready terminal may have room for less than the line and block midway. */
static bool write_bytes(int fd, const char *line, size_t bytes)
{
    size_t n = 0;

    while (n < bytes && write_if_ready(fd, line + n, 1))
        n++;
    return n == bytes;
}

static bool write_own(int fd, const char *line, size_t bytes)
{
    const int own = open_again(fd);

    if (own < 0)
        return isatty(fd) ? write_bytes(fd, line, bytes)
                          : write_if_ready(fd, line, bytes);
    const bool written = write_whole(own, line, bytes);
    close(own);
    return written;
}

static bool write_now(int fd, const char *line, size_t bytes)
{
    struct stat is;

    if (fd < 0 || fstat(fd, &is) != 0)
        return false;
    if (S_ISFIFO(is.st_mode) || isatty(fd))
        return write_own(fd, line, bytes);
    if (S_ISSOCK(is.st_mode))
        return send(fd, line, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)bytes;
    return write_if_ready(fd, line, bytes);
}

bool trib_log_write_mt(const char *line, size_t bytes)
{
    struct trib_quiet quiet;

    assert(bytes <= PIPE_BUF);
    trib_quiet_begin(&quiet, SIGPIPE);
    const bool written = write_now(fileno(stderr), line, bytes);
    trib_quiet_end(&quiet);
    return written;
}
