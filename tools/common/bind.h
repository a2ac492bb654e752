/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binding of started ranks to cores.
 *
 * By default each rank gets an equal share of the cores available to the program, if
 * there are at least as many cores as ranks. Ranks that wait for each other then never
 * share a core, and a rank's threads run on its share. Restrictions of the program
 * itself (taskset, a batch system, a container) apply to its ranks as well. A single
 * rank, or more ranks than cores, are not bound.
 */
#ifndef TOOLS_COMMON_BIND_H
#define TOOLS_COMMON_BIND_H

#include <sched.h>
#include <stdbool.h>

/* Values of --bind, in this order. */
enum tool_bind { TOOL_BIND_NONE, TOOL_BIND_CORE, TOOL_BIND_AUTO };

#define TOOL_BIND_WORDS "none core auto"
#define TOOL_BIND_HELP \
    "auto: give each rank an equal share of the cores if there are at least as many " \
    "cores as ranks; core: one core per rank, round-robin; none: no binding [auto]"

/** tool_cores - return the number of cores on which this process may run; 0:
 * unknown. */
int tool_cores(void);

/**
 * tool_bind_rank - bind the calling process to the cores of its rank.
 *
 * ranks    number of ranks that share the cores available to this process
 * returns  0, or an errno
 */
int tool_bind_rank(enum tool_bind how, int rank, int ranks);

/** tool_bind_say - print one line about the effect of `auto`, if stderr is a
 * terminal. */
void tool_bind_say(const char *tool, enum tool_bind how, int ranks);

#endif
