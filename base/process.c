/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* The fields of /proc/PID/stat that matter here. */
struct stat_line {
    char state;
    long threads;
    unsigned long long start;
};

static int open_stat(int pid)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    return trib_fd_keep(open(path, O_RDONLY | O_CLOEXEC));
}

/*
 * /proc/PID/stat tells death, stop and, by the start time, whether the pid has been
 * given to somebody else. Returns 0, ESRCH for a process that has gone, or an errno.
 */
static int read_stat(int fd, struct stat_line *out)
{
    char text[1024];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

    if (n <= 0)
        return n < 0 ? errno : ESRCH;
    text[n] = '\0';
    /* The command's name may hold anything: what counts begins after its last ")". */
    const char *rest = strrchr(text, ')');
    if (!rest || sscanf(rest + 1,
                        " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
                        "%*d %*d %ld %*d %llu",
                        &out->state, &out->threads, &out->start) != 3)
        return EINVAL;
    return 0;
}

static enum trib_process_state judge(const struct stat_line *line, uint64_t start)
{
    if (start && line->start != start)
        return TRIB_PROCESS_DEAD;
    /* A main thread may end before the others: a zombie that is not the last one. */
    if ((line->state == 'Z' || line->state == 'X') && line->threads <= 1)
        return TRIB_PROCESS_DEAD;
    return line->state == 'T' ? TRIB_PROCESS_STOPPED : TRIB_PROCESS_RUNS;
}

static uint64_t name_space(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) ? 0 : (uint64_t)st.st_ino;
}

/* The first 16 hexadecimal digits of the boot id: 60 random bits. */
static uint64_t boot_id(void)
{
    char text[64] = "", digits[17];
    int fd =
            trib_fd_keep(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)),
        n = 0;

    if (fd < 0)
        return 0;
    ssize_t got = read(fd, text, sizeof(text) - 1);
    close(fd);
    for (ssize_t i = 0; i < got && n < 16; i++)
        if (text[i] != '-')
            digits[n++] = text[i];
    digits[n] = '\0';
    return n == 16 ? strtoull(digits, NULL, 16) : 0;
}

void trib_process_find(int pid, struct trib_process *out)
{
    struct stat_line line;
    int fd = open_stat(pid);

    *out = (struct trib_process){.pid = pid, .space = name_space(), .boot = boot_id()};
    if (fd < 0)
        return;
    if (read_stat(fd, &line) == 0)
        out->start = line.start;
    close(fd);
}

void trib_process_self(struct trib_process *out)
{
    trib_process_find((int)getpid(), out);
}

bool trib_process_same(const struct trib_process *a, const struct trib_process *b)
{
    return a->boot == b->boot && a->space == b->space && a->pid == b->pid &&
           a->start == b->start;
}

enum trib_process_state trib_process_look(const struct trib_process *process)
{
    struct stat_line line;

    if (process->pid <= 0 || process->space != name_space())
        return TRIB_PROCESS_RUNS;
    int fd = open_stat(process->pid);
    int error = fd < 0 ? (errno == ENOENT ? ESRCH : errno) : read_stat(fd, &line);
    if (fd >= 0)
        close(fd);
    if (error)
        return error == ESRCH ? TRIB_PROCESS_DEAD : TRIB_PROCESS_RUNS;
    return judge(&line, process->start);
}

trib_status_t trib_process_watch_open(struct trib_process_watch *watch,
                                      const struct trib_process *who,
                                      struct trib_error *err)
{
    watch->who = *who;
    watch->pidfd = trib_fd_keep((int)syscall(SYS_pidfd_open, who->pid, 0));
    watch->stat_fd = open_stat(who->pid);
    int error = errno;
    bool gone = watch->stat_fd < 0 ? error == ENOENT || error == ESRCH
                                   : trib_process_watch_look(watch) == TRIB_PROCESS_DEAD;
    if (watch->stat_fd >= 0 && !gone)
        return TRIB_OK;
    trib_process_watch_close(watch);
    if (gone)
        return trib_fail(err, TRIB_ERR_PEER_LOST, "process %d has died", who->pid);
    errno = error;
    return trib_fail(err, TRIB_ERR_UNSUPPORTED, "cannot open /proc/%d/stat: %m",
                     who->pid);
}

void trib_process_watch_close(struct trib_process_watch *watch)
{
    if (watch->pidfd >= 0)
        close(watch->pidfd);
    if (watch->stat_fd >= 0)
        close(watch->stat_fd);
    watch->pidfd = -1;
    watch->stat_fd = -1;
}

enum trib_process_state trib_process_watch_look(const struct trib_process_watch *watch)
{
    struct stat_line line;

    return read_stat(watch->stat_fd, &line) ? TRIB_PROCESS_DEAD
                                            : judge(&line, watch->who.start);
}
