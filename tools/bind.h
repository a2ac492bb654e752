/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binding of the ranks that a program starts to cores.
 *
 * By itself each rank gets an equal share of the cores that the program may use, where
 * there are as many cores as ranks. Ranks that wait for each other are then never on
 * one core, and threads of a rank have the cores of its share. A restriction of the
 * program itself (by taskset, a batch system, a container) holds for its ranks, too. A
 * single rank, and ranks that have to share cores, are left to the kernel.
 */
#ifndef TOOLS_BIND_H
#define TOOLS_BIND_H

#include <sched.h>
#include <stdbool.h>

/* The words of --bind, in this order. */
enum tool_bind { TOOL_BIND_NONE, TOOL_BIND_CORE, TOOL_BIND_AUTO };

#define TOOL_BIND_WORDS "none core auto"
#define TOOL_BIND_HELP \
    "auto: give each rank an equal share of the cores if there are at least as many " \
    "cores as ranks; core: one core per rank, round-robin; none: no binding [auto]"

/** tool_cores - the number of cores on which this process may run; 0: unknown. */
int tool_cores(void);

/**
 * tool_bind_rank - let the calling process run on the cores of its rank alone.
 *
 * ranks    how many share the cores that this process may use so far
 * returns  0, or an errno
 */
int tool_bind_rank(enum tool_bind how, int rank, int ranks);

/** tool_bind_say - on a terminal, say in one line what `auto` does. */
void tool_bind_say(const char *tool, enum tool_bind how, int ranks);

#endif
