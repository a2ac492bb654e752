/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks of one host without a launcher: one process each, by fork.
 */
#ifndef TOOLS_LAUNCH_H
#define TOOLS_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/bind.h"

/** tool_rank_fn - what a started rank does; returns its exit code. */
typedef int (*tool_rank_fn)(void *arg, int rank, const char *root);

struct tool_job {
    const char *tool; /* whose name stands before each sentence on standard error */
    int ranks;
    int later; /* of them, those with the highest numbers, which trib_join */
    const char *root; /* where they meet; NULL: a meeting place on this host */
    enum tool_bind bind;
    tool_rank_fn fn;
    void (*started)(void *arg); /* in the parent, behind the last fork; may be NULL */
    void *arg;
};

/**
 * tool_launch - run job->fn in job->ranks processes of this host.
 *
 * returns  0, or the exit code of the first rank that failed
 */
int tool_launch(const struct tool_job *job);

/** tool_launched - true if a launcher has started this process; by: which variable says
 * so. */
bool tool_launched(char *by, size_t bytes);

#endif
