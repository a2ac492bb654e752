/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ctrl-C: the first one ends the measurement, which keeps its samples so far. A second
 * one ends the process. Signals within a second count as one, since the terminal and
 * the process that started the ranks may both send the first.
 */
#ifndef PERF_COMMON_PERF_INTERRUPT_H
#define PERF_COMMON_PERF_INTERRUPT_H

#include <stdbool.h>
#include <sys/types.h>

enum { EXIT_INTERRUPTED = 130 }; /* as in shells: 128 + SIGINT */

/** perf_interrupt_watch - catch SIGINT, unless the parent ignored it. */
void perf_interrupt_watch(void);

/** perf_interrupt_end - restore the default handler. */
void perf_interrupt_end(void);

/** perf_interrupted - return true if SIGINT came since perf_interrupt_watch. */
bool perf_interrupted(void);

/** perf_interrupt_pass - end this process group on SIGINT, and kill it on the second;
 * 0: none. */
void perf_interrupt_pass(pid_t group);

/** perf_interrupt_take - false: block SIGINT; true: unblock it. */
void perf_interrupt_take(bool take);

#endif
