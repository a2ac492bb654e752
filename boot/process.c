/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct stat_line {
    char state;
    long threads;
    unsigned long long start;
};

/*
 * /proc/PID/stat rather than a pidfd: one read tells death, stop and, by the start
 * time, whether the pid has been given to somebody else.
 *
 * Returns 0, ESRCH for a process that is not there, or another errno.
 */
static int read_stat(int pid, struct stat_line *out)
{
    char path[32];
    char text[1024];

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? ESRCH : errno;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    int error = errno;
    close(fd);
    if (n <= 0)
        return n < 0 ? error : ESRCH;
    text[n] = '\0';

    /* The command's name may hold anything, so count fields from its last ")". */
    const char *rest = strrchr(text, ')');
    if (!rest || sscanf(rest + 1,
                        " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
                        "%*d %ld %*d %llu",
                        &out->state, &out->threads, &out->start) != 3)
        return EINVAL;
    return 0;
}

static uint64_t name_space(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) ? 0 : (uint64_t)st.st_ino;
}

void trib_process_find(int pid, struct trib_process *out)
{
    struct stat_line line;

    *out = (struct trib_process){.pid = pid, .space = name_space()};
    if (read_stat(pid, &line) == 0)
        out->start = line.start;
}

void trib_process_self(struct trib_process *out)
{
    trib_process_find((int)getpid(), out);
}

enum trib_process_state trib_process_look(const struct trib_process *process)
{
    struct stat_line line;

    if (process->pid <= 0 || process->space != name_space())
        return TRIB_PROCESS_RUNS;
    int error = read_stat(process->pid, &line);
    if (error)
        return error == ESRCH ? TRIB_PROCESS_DEAD : TRIB_PROCESS_RUNS;
    if (process->start && line.start != process->start)
        return TRIB_PROCESS_DEAD;
    /* A main thread may end before the others: a zombie that is not the last one. */
    if ((line.state == 'Z' || line.state == 'X') && line.threads <= 1)
        return TRIB_PROCESS_DEAD;
    return line.state == 'T' ? TRIB_PROCESS_STOPPED : TRIB_PROCESS_RUNS;
}
