/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens and renames files of the snapshot directory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agg/daemon/archive_parts.h"
#include "base/fd.h"

static bool is_ours(const struct stat *s, struct trib_error *fault)
{
    if (!S_ISREG(s->st_mode))
        (void)trib_fail(fault, TRIB_ERR_MISMATCH, "it is not a regular file");
    else if (s->st_uid != geteuid() && s->st_uid != 0)
        (void)trib_fail(fault, TRIB_ERR_MISMATCH,
                        "it is owned by user %u, not by tribd's user or root",
                        (unsigned)s->st_uid);
    return !fault->status;
}

/* Check the file by name first: opening a device may have side effects, and opening a
 * FIFO may block. */
int archive_open_file(const struct archive *a, const char *name,
                      struct trib_error *fault, uint64_t *bytes_out)
{
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    struct stat s;

    *bytes_out = 0;
    if (fstatat(a->folder_fd, name, &s, AT_SYMLINK_NOFOLLOW) == 0 &&
        !is_ours(&s, fault))
        return -1;
    const int fd = trib_fd_keep(openat(a->folder_fd, name, flags));
    if (fd < 0 || fstat(fd, &s) != 0)
        (void)trib_fail(fault, TRIB_ERR_SYSTEM, "cannot open it: %m");
    else if (is_ours(&s, fault))
        *bytes_out = (uint64_t)s.st_size;
    if (!fault->status)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

bool archive_exists(const struct archive *a, const char *name)
{
    struct stat s;

    return fstatat(a->folder_fd, name, &s, AT_SYMLINK_NOFOLLOW) == 0;
}

bool archive_rename(const struct archive *a, const char *from, const char *to)
{
    if (archive_exists(a, to))
        errno = EEXIST;
    return errno == ENOENT && renameat(a->folder_fd, from, a->folder_fd, to) == 0;
}
