/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of this host, as /proc shows them: who are they, do they live.
 */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;

/* A process for good: a pid may be used again, but not with the same start time. */
struct trib_process {
    int pid;        /* 0: not known */
    uint64_t start; /* clock ticks after the host's start, in the host's time namespace
                     * and correct to one tick; 0: not known */
    uint64_t space; /* inode of the pid name space in which pid counts; 0: not known */
    uint64_t boot;  /* digest of the boot id: the same on one running kernel only; 0:
                     * not known */
};

enum trib_process_state {
    TRIB_PROCESS_RUNS,
    TRIB_PROCESS_STOPPED, /* stopped by SIGSTOP, a terminal or the freezer of its
                           * control group; a debugger's stop counts as running */
    TRIB_PROCESS_DEAD,    /* ended, also where its parent has not reaped it yet */
};

/** trib_process_self - this process; what /proc does not show stays 0. */
void trib_process_self(struct trib_process *out);

/** trib_process_find - another process of this name space; start is 0 if it has gone,
 * or /proc does not show it. */
void trib_process_find(int pid, struct trib_process *out);

/** trib_process_same_start - are both the start of one process? Starts that were read
 * in different time namespaces may be one tick apart. */
static inline bool trib_process_same_start(uint64_t a, uint64_t b)
{
    return a - b + 1 <= 2;
}

/** trib_process_same - do both name one and the same process? */
bool trib_process_same(const struct trib_process *a, const struct trib_process *b);

/**
 * trib_process_number - the number under which /proc shows a process of this name
 * space.
 *
 * It is another than pid where /proc was mounted outside of the name space, as after
 * `unshare -p -f` without --mount-proc.
 *
 * returns  0: /proc does not show it, or it has gone
 */
int trib_process_number(int pid);

/**
 * trib_process_look - the state of a process.
 *
 * RUNS also where nobody can tell: pid not known, or /proc not readable.
 */
enum trib_process_state trib_process_look(const struct trib_process *process);

/* Looks at one process again and again; holds up to two descriptors. */
struct trib_process_watch {
    struct trib_process who;
    int pidfd; /* -1 where the kernel or a sandbox has none: stat_fd tells then */
    int stat_fd;
    int number; /* result of trib_process_number */
    uint64_t shift; /* boot-time offset of our time namespace, in ticks */
    unsigned quiet; /* looks in turn at which it slept and had used no processor */
    unsigned long ticks; /* processor time that it had used at the last look, in
                          * ticks */
    bool frozen; /* at the last look at its control group */
    bool stopped; /* at the last look, by a signal */
};

/**
 * trib_process_watch_open - begin to watch a process of this host.
 *
 * errors   TRIB_ERR_PEER_LOST when it is gone already
 *          TRIB_ERR_UNSUPPORTED when /proc does not show it
 */
trib_status_t trib_process_watch_open(struct trib_process_watch *watch,
                                      const struct trib_process *who,
                                      struct trib_error *err);

/** trib_process_watch_close - release the descriptors; harmless when done before. */
void trib_process_watch_close(struct trib_process_watch *watch);

/**
 * trib_process_watch_look - one reading of /proc; a few microseconds.
 *
 * A process that does nothing may be frozen: its control group is looked at once in
 * several looks.
 * RUNS also where a process is stopped now and was at the last look, but has used the
 * processor in between.
 */
enum trib_process_state trib_process_watch_look(struct trib_process_watch *watch);

/** trib_process_watch_dead - the same reading, for its death alone. */
bool trib_process_watch_dead(const struct trib_process_watch *watch);

#endif
