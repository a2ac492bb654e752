/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ctrl-C: a measurement ends with what it has so far. A second one, not before a second
 * later, ends the process: a terminal and the process that started the ranks may both
 * tell of the first.
 */
#ifndef PERF_PERF_INTERRUPT_H
#define PERF_PERF_INTERRUPT_H

#include <stdbool.h>
#include <sys/types.h>

enum { EXIT_INTERRUPTED = 130 }; /* as shells have it */

/** perf_interrupt_watch - from now on take SIGINT, if the parent has not had it
 * ignored. */
void perf_interrupt_watch(void);

/** perf_interrupt_end - the default again. */
void perf_interrupt_end(void);

/** perf_interrupted - true if there was one since perf_interrupt_watch. */
bool perf_interrupted(void);

/** perf_interrupt_pass - end this process group, too; 0: none. A second signal kills
 * it. */
void perf_interrupt_pass(pid_t group);

/** perf_interrupt_take - false: signals that come wait until it is called with true. */
void perf_interrupt_take(bool take);

#endif
