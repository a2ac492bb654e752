/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u
#endif

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

trib_status_t trib_memfd_check(size_t bytes, struct trib_error *err)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        bytes <= limit.rlim_cur)
        return TRIB_OK;
    return trib_fail(
        err, TRIB_ERR_SYSTEM,
        "shared memory of %zu bytes is larger than the files that this process "
        "may make (%llu bytes): raise ulimit -f",
        bytes, (unsigned long long)limit.rlim_cur);
}

/* Kernels before 6.3 reject NOEXEC_SEAL; later ones warn if it is missing. */
static int make(const char *name)
{
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = trib_fd_keep(memfd_create(name, flags | MFD_NOEXEC_SEAL));

    if (fd < 0 && errno == EINVAL)
        fd = trib_fd_keep(memfd_create(name, flags));
    return fd;
}

/* Return the cure, appended to the errno text. */
static const char *cure(int error)
{
    switch (error) {
    case EMFILE:
        return " (raise ulimit -n)";
    case ENFILE:
        return " (raise sysctl fs.file-max)";
    case EPERM:
    case EACCES:
    case ENOSYS:
        return " (a seccomp filter of the container, or the kernel, bars it: let it "
               "pass)";
    default:
        return "";
    }
}

trib_status_t trib_memfd_create(const char *name, size_t bytes, int *fd_out,
                                struct trib_error *err)
{
    trib_status_t status = trib_memfd_check(bytes, err);

    if (status != TRIB_OK)
        return status;
    int fd = make(name);
    if (fd < 0)
        return trib_fail(err, TRIB_ERR_SYSTEM,
                         "cannot make shared memory: memfd_create: %m%s", cure(errno));
    const char *call = "ftruncate";
    int failed = ftruncate(fd, (off_t)bytes);
    if (!failed) {
        call = "fcntl(F_ADD_SEALS)";
        failed = fcntl(fd, F_ADD_SEALS, SEALS);
    }
    if (failed) {
        status = trib_fail(err, TRIB_ERR_SYSTEM,
                           "cannot make shared memory of %zu bytes: %s: %m%s", bytes,
                           call, cure(errno));
        close(fd);
        return status;
    }
    *fd_out = fd;
    return TRIB_OK;
}
