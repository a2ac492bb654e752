/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* The fields of /proc/PID/stat that matter here. */
struct stat_line {
    char state;
    long threads;
    unsigned long long start;
};

/* The command's name may hold anything: what counts begins after its last ")". */
static bool stat_line_read(int fd, struct stat_line *out)
{
    char text[1024];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *rest = strrchr(text, ')');
    return rest && sscanf(rest + 1,
                          " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
                          "%*d %*d %ld %*d %llu",
                          &out->state, &out->threads, &out->start) == 3;
}

/* The first 16 hexadecimal digits of the boot id: 60 random bits. */
static bool boot_id_read(uint64_t *out)
{
    char text[64] = "";
    char digits[17];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    int n = 0;

    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, sizeof(text) - 1);
    close(fd);
    for (ssize_t i = 0; i < got && n < 16; i++) {
        if (text[i] != '-')
            digits[n++] = text[i];
    }
    digits[n] = '\0';
    *out = strtoull(digits, NULL, 16);
    return n == 16;
}

trib_status_t trib_ident_self(struct trib_ident *out, struct trib_error *err)
{
    struct stat_line line;
    struct stat ns;

    memset(out, 0, sizeof(*out));
    out->pid = (int32_t)getpid();
    if (!boot_id_read(&out->boot))
        return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                         "cannot read /proc/sys/kernel/random/boot_id: %m; "
                         "is /proc mounted?");
    if (stat("/proc/self/ns/pid", &ns) == 0)
        out->pidns = (uint64_t)ns.st_ino;

    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && stat_line_read(fd, &line);
    if (fd >= 0)
        close(fd);
    if (!ok)
        return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                         "cannot read /proc/self/stat: %m; is /proc mounted?");
    out->start = line.start;
    return TRIB_OK;
}

bool trib_ident_same(const struct trib_ident *a, const struct trib_ident *b)
{
    return a->boot == b->boot && a->pidns == b->pidns && a->pid == b->pid &&
           a->start == b->start;
}

trib_status_t trib_watch_open(struct trib_watch *watch,
                                      const struct trib_ident *who,
                                      struct trib_error *err)
{
    char path[64];

    watch->who = *who;
    watch->pidfd = (int)syscall(SYS_pidfd_open, who->pid, 0);
    snprintf(path, sizeof(path), "/proc/%d/stat", who->pid);
    watch->stat_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (watch->stat_fd < 0) {
        int saved_errno = errno;
        trib_watch_close(watch);
        errno = saved_errno;
        if (errno == ENOENT || errno == ESRCH)
            return trib_fail(err, TRIB_ERR_PEER_LOST, "process %d has died", who->pid);
        return trib_fail(err, TRIB_ERR_UNSUPPORTED, "cannot open %s: %m", path);
    }
    if (trib_watch_look(watch) == TRIB_WATCH_DEAD) {
        trib_watch_close(watch);
        return trib_fail(err, TRIB_ERR_PEER_LOST, "process %d has died", who->pid);
    }
    return TRIB_OK;
}

void trib_watch_close(struct trib_watch *watch)
{
    if (watch->pidfd >= 0)
        close(watch->pidfd);
    if (watch->stat_fd >= 0)
        close(watch->stat_fd);
    watch->pidfd = -1;
    watch->stat_fd = -1;
}

enum trib_watch_state trib_watch_look(const struct trib_watch *watch)
{
    struct stat_line line;

    if (!stat_line_read(watch->stat_fd, &line))
        return TRIB_WATCH_DEAD;
    if (line.start != watch->who.start)
        return TRIB_WATCH_DEAD;
    /* A main thread may end before the others: a zombie that is not the last one. */
    if ((line.state == 'Z' || line.state == 'X') && line.threads <= 1)
        return TRIB_WATCH_DEAD;
    return line.state == 'T' ? TRIB_WATCH_STOPPED : TRIB_WATCH_RUNS;
}
