/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of this host, as /proc shows them: who are they, do they live.
 */
#ifndef BOOT_PROCESS_H
#define BOOT_PROCESS_H

#include <stdint.h>

/* A process for good: a pid may be used again, but not with the same start time. */
struct trib_process {
    int pid;        /* 0: not known */
    uint64_t start; /* clock ticks after the host's start; 0: not known */
    uint64_t space; /* the pid name space; 0: not known */
};

enum trib_process_state {
    TRIB_PROCESS_RUNS,
    TRIB_PROCESS_STOPPED, /* by SIGSTOP or a terminal; a debugger's stop counts as running */
    TRIB_PROCESS_DEAD,    /* ended, also where its parent has not reaped it yet */
};

/** trib_process_self - this process. */
void trib_process_self(struct trib_process *out);

/** trib_process_find - another process of this name space; start is 0 if it has gone. */
void trib_process_find(int pid, struct trib_process *out);

/**
 * trib_process_look - what is the process doing?
 *
 * RUNS also where nobody can tell: pid not known, or /proc not readable.
 */
enum trib_process_state trib_process_look(const struct trib_process *process);

#endif
