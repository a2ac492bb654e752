/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/freezer.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* Fields of /proc/PID/stat used here. */
struct stat_line {
    char state;
    unsigned long user, kernel; /* CPU time in ticks */
    long threads;
    unsigned long long start;
};

/* Return the number of this process in /proc; -1: no /proc. */
static int own_number(void)
{
    char text[32];
    ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);

    if (n <= 0)
        return -1;
    text[n] = '\0';
    return atoi(text);
}

/* Translate a PID through the "Pid:" line of a pidfd, which shows the number in this
 * /proc; 0 and -1: none. */
static int translate(int pid)
{
    int fd = trib_fd_keep((int)syscall(SYS_pidfd_open, pid, 0));
    char path[48], text[32];

    if (fd < 0)
        return 0;
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    bool found = trib_file_field("", path, "Pid", true, text, sizeof(text));
    close(fd);
    int number = found ? atoi(text) : 0;
    return number > 0 ? number : 0;
}

int trib_process_number(int pid)
{
    int own = own_number(), self = (int)getpid();

    if (own == self)
        return pid;
    if (own <= 0)
        return 0;
    return pid == self ? own : translate(pid);
}

static int open_stat(int number)
{
    char path[32];

    if (number <= 0) {
        errno = ENXIO;
        return -1;
    }
    snprintf(path, sizeof(path), "/proc/%d/stat", number);
    return trib_fd_keep(open(path, O_RDONLY | O_CLOEXEC));
}

/*
 * Read /proc/PID/stat: death, stop and, by the start time, PID reuse. Return 0, ESRCH
 * for an exited process, or an errno.
 */
static int read_stat(int fd, struct stat_line *out)
{
    char text[1024];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

    if (n <= 0)
        return n < 0 ? errno : ESRCH;
    text[n] = '\0';
    /* The command name may contain anything; the fields start after its last ")". */
    const char *rest = strrchr(text, ')');
    if (!rest ||
        sscanf(rest + 1,
               " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d "
               "%*d %*d %ld %*d %llu",
               &out->state, &out->user, &out->kernel, &out->threads, &out->start) != 5)
        return EINVAL;
    return 0;
}

static bool same_file(const char *path, const char *other)
{
    struct stat a, b;

    return stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_ino == b.st_ino;
}

/* Return the boot-time offset of this process's time namespace in ticks, which /proc
 * adds to every start time. timens_offsets holds the offsets of the children's
 * namespace, which may differ from this process's. */
static uint64_t start_shift(void)
{
    char text[64];
    long long s, ns;

    if (!trib_file_field("", "/proc/self/timens_offsets", "boottime", false, text,
                         sizeof(text)) ||
        sscanf(text, "%lld %lld", &s, &ns) != 2 || (s == 0 && ns == 0) ||
        !same_file("/proc/self/ns/time", "/proc/self/ns/time_for_children"))
        return 0;
    const long long per_s = sysconf(_SC_CLK_TCK);
    return (uint64_t)(s * per_s + ns * per_s / 1000000000);
}

static enum trib_process_state judge(const struct stat_line *line, uint64_t start,
                                     uint64_t shift)
{
    if (start && !trib_process_same_start(line->start - shift, start))
        return TRIB_PROCESS_DEAD;
    /* A zombie main thread with other live threads is not dead. */
    if ((line->state == 'Z' || line->state == 'X') && line->threads <= 1)
        return TRIB_PROCESS_DEAD;
    return line->state == 'T' ? TRIB_PROCESS_STOPPED : TRIB_PROCESS_RUNS;
}

static uint64_t name_space(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) ? 0 : (uint64_t)st.st_ino;
}

/* Return the first 16 hexadecimal digits of the boot ID: 60 random bits. */
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
    int fd = open_stat(trib_process_number(pid));

    *out = (struct trib_process){.pid = pid, .space = name_space(), .boot = boot_id()};
    if (fd < 0)
        return;
    if (read_stat(fd, &line) == 0)
        out->start = line.start - start_shift();
    close(fd);
}

void trib_process_self(struct trib_process *out)
{
    trib_process_find((int)getpid(), out);
}

bool trib_process_same(const struct trib_process *a, const struct trib_process *b)
{
    return a->boot == b->boot && a->space == b->space && a->pid == b->pid &&
           trib_process_same_start(a->start, b->start);
}

/* Ask the kernel whether the process exists if /proc does not show it. */
static enum trib_process_state query_by_signal(int pid)
{
    return kill(pid, 0) && errno == ESRCH ? TRIB_PROCESS_DEAD : TRIB_PROCESS_RUNS;
}

/* A frozen process shows as asleep, or as waiting for a disk. */
static bool waits(const struct stat_line *line)
{
    return line->state == 'D' || line->state == 'S';
}

enum trib_process_state trib_process_query(const struct trib_process *process)
{
    struct stat_line line;

    if (process->pid <= 0 || process->space != name_space())
        return TRIB_PROCESS_RUNS;
    int number = trib_process_number(process->pid);
    if (number == 0)
        return query_by_signal(process->pid);
    int fd = open_stat(number);
    int error = fd < 0 ? (errno == ENOENT ? ESRCH : errno) : read_stat(fd, &line);
    if (fd >= 0)
        close(fd);
    if (error)
        return error == ESRCH ? TRIB_PROCESS_DEAD : TRIB_PROCESS_RUNS;
    enum trib_process_state state = judge(&line, process->start, start_shift());
    if (state == TRIB_PROCESS_RUNS && waits(&line) && trib_frozen(number))
        return TRIB_PROCESS_STOPPED;
    return state;
}

trib_status_t trib_process_watch_open(struct trib_process_watch *watch,
                                      const struct trib_process *who,
                                      struct trib_error *err)
{
    *watch = (struct trib_process_watch){
        .who = *who, .number = trib_process_number(who->pid), .shift = start_shift()};
    watch->pidfd = trib_fd_keep((int)syscall(SYS_pidfd_open, who->pid, 0));
    watch->stat_fd = open_stat(watch->number);
    int error = errno;
    bool gone = watch->stat_fd >= 0 ? trib_process_watch_dead(watch)
                : watch->number     ? error == ENOENT || error == ESRCH
                                    : query_by_signal(who->pid) == TRIB_PROCESS_DEAD;
    if (watch->stat_fd >= 0 && !gone)
        return TRIB_OK;
    trib_process_watch_close(watch);
    if (gone)
        return trib_fail(err, TRIB_ERR_PEER_LOST, "process %d has died", who->pid);
    errno = error;
    return trib_fail(err, TRIB_ERR_UNSUPPORTED, "cannot open /proc/%d/stat: %m",
                     watch->number ? watch->number : who->pid);
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

/* Checking the cgroup costs several times as much as checking the process. */
static bool is_frozen(struct trib_process_watch *w, const struct stat_line *line)
{
    enum { EVERY = 4 };
    unsigned long ticks = line->user + line->kernel;

    if (!waits(line) || ticks != w->ticks) {
        w->quiet = 0;
        w->frozen = false;
    } else if (++w->quiet % EVERY == 0) {
        w->frozen = trib_frozen(w->number);
    }
    w->ticks = ticks;
    w->stopped = false;
    return w->frozen;
}

/* Tools such as cpulimit stop and continue a process many times per second, and every
 * check may hit a stop. The CPU time shows that the process ran in between. */
static bool has_run(struct trib_process_watch *w, const struct stat_line *line)
{
    const unsigned long ticks = line->user + line->kernel;
    const bool ran = w->stopped && ticks != w->ticks;

    w->stopped = true;
    w->ticks = ticks;
    return ran;
}

enum trib_process_state trib_process_watch_query(struct trib_process_watch *watch)
{
    struct stat_line line;

    if (read_stat(watch->stat_fd, &line))
        return TRIB_PROCESS_DEAD;
    enum trib_process_state state = judge(&line, watch->who.start, watch->shift);
    if (state == TRIB_PROCESS_STOPPED && has_run(watch, &line))
        state = TRIB_PROCESS_RUNS;
    else if (state == TRIB_PROCESS_RUNS && is_frozen(watch, &line))
        state = TRIB_PROCESS_STOPPED;
    return state;
}

bool trib_process_watch_dead(const struct trib_process_watch *watch)
{
    struct stat_line line;

    return read_stat(watch->stat_fd, &line) ||
           judge(&line, watch->who.start, watch->shift) == TRIB_PROCESS_DEAD;
}
