/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Identity and state of local processes, as shown by /proc.
 */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;

/* Permanent identity of a process: a PID may be reused, but not with the same start
 * time. */
struct trib_process {
    int pid; /* 0: unknown */
    uint64_t start; /* clock ticks since boot, in the host's time namespace, accurate
                     * to one tick; 0: unknown */
    uint64_t space; /* inode of the PID namespace of pid; 0: unknown */
    uint64_t boot; /* digest of the boot ID, equal only on one running kernel; 0:
                     * unknown */
};

enum trib_process_state {
    TRIB_PROCESS_RUNS,
    TRIB_PROCESS_STOPPED, /* stopped by SIGSTOP, a terminal or the cgroup freezer; a
                           * debugger's stop counts as running */
    TRIB_PROCESS_DEAD, /* exited, even if not yet reaped */
};

/** trib_process_self - identify this process; fields that /proc does not show stay
 * 0. */
void trib_process_self(struct trib_process *out);

/** trib_process_find - identify another process of this namespace; start is 0 if it has
 * exited or /proc does not show it. */
void trib_process_find(int pid, struct trib_process *out);

/** trib_process_same_start - compare start times. Times read in different time
 * namespaces may differ by one tick. */
static inline bool trib_process_same_start(uint64_t a, uint64_t b)
{
    return a - b + 1 <= 2;
}

/** trib_process_same - return true if both identify the same process. */
bool trib_process_same(const struct trib_process *a, const struct trib_process *b);

/**
 * trib_process_number - return the number of a process of this namespace in /proc.
 *
 * It differs from pid if /proc was mounted outside the namespace, as after `unshare -p
 * -f` without --mount-proc.
 *
 * returns  0: exited, or not shown by /proc
 */
int trib_process_number(int pid);

/**
 * trib_process_query - return the state of a process.
 *
 * Also RUNS if the state is unknown: pid unknown, or /proc unreadable.
 */
enum trib_process_state trib_process_query(const struct trib_process *process);

/* Repeated checks of one process; holds up to two descriptors. */
struct trib_process_watch {
    struct trib_process who;
    int pidfd; /* -1 if the kernel or a sandbox lacks pidfds; stat_fd is used then */
    int stat_fd;
    int number; /* result of trib_process_number */
    uint64_t shift; /* boot-time offset of our time namespace, in ticks */
    unsigned quiet; /* consecutive checks at which the process slept and had used no
                     * CPU time */
    unsigned long ticks; /* CPU time at the last check, in ticks */
    bool frozen; /* at the last check of its cgroup */
    bool stopped; /* at the last check, by a signal */
};

/**
 * trib_process_watch_open - start to watch a local process.
 *
 * errors   TRIB_ERR_PEER_LOST if it has already exited
 *          TRIB_ERR_UNSUPPORTED if /proc does not show it
 */
trib_status_t trib_process_watch_open(struct trib_process_watch *watch,
                                      const struct trib_process *who,
                                      struct trib_error *err);

/** trib_process_watch_close - release the descriptors; idempotent. */
void trib_process_watch_close(struct trib_process_watch *watch);

/**
 * trib_process_watch_query - read the state from /proc once; takes a few microseconds.
 *
 * An idle process may be frozen, so its cgroup is checked once in several calls.
 * Also RUNS if the process is stopped now and was at the last check, but has used CPU
 * time in between.
 */
enum trib_process_state trib_process_watch_query(struct trib_process_watch *watch);

/** trib_process_watch_dead - the same reading, only for death. */
bool trib_process_watch_dead(const struct trib_process_watch *watch);

#endif
