/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST = STDERR_FILENO + 1 };

int trib_fd_keep(int fd)
{
    if (fd < 0 || fd >= FIRST)
        return fd;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST);
    int error = errno;
    close(fd);
    errno = error;
    return high;
}

/* Move both ends, or close both on failure. */
static int keep_both(int ends[2])
{
    ends[0] = trib_fd_keep(ends[0]);
    int error = errno;
    ends[1] = trib_fd_keep(ends[1]);
    if (ends[0] >= 0 && ends[1] >= 0)
        return 0;
    error = ends[0] < 0 ? error : errno;
    for (int i = 0; i < 2; i++) {
        if (ends[i] >= 0)
            close(ends[i]);
        ends[i] = -1;
    }
    errno = error;
    return -1;
}

int trib_fd_pipe(int ends[2], int flags)
{
    return pipe2(ends, flags) == 0 ? keep_both(ends) : -1;
}

int trib_fd_pair(int ends[2], int type)
{
    return socketpair(AF_UNIX, type, 0, ends) == 0 ? keep_both(ends) : -1;
}

FILE *trib_fd_create(const char *path)
{
    int fd = trib_fd_keep(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;

    if (fd >= 0 && !file)
        close(fd);
    return file;
}

void trib_fd_guard(void)
{
    int saved = errno, fd;

    /* Each open takes the lowest free descriptor; stop once it is above 2. */
    do
        fd = open("/", O_PATH | O_CLOEXEC);
    while (fd >= 0 && fd < FIRST);
    if (fd >= 0)
        close(fd);
    errno = saved;
}
