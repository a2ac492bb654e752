/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start ranks on one host without a launcher: one forked process each.
 */
#ifndef TOOLS_COMMON_LAUNCH_H
#define TOOLS_COMMON_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/common/bind.h"

/** tool_rank_fn - body of a started rank; returns its exit code. */
typedef int (*tool_rank_fn)(void *arg, int rank, const char *root);

struct tool_job {
    const char *tool; /* prefix of error messages */
    int ranks;
    int later; /* number of these ranks, the highest, that use trib_join */
    const char *root; /* rendezvous address; NULL: a local rendezvous on this host */
    enum tool_bind bind;
    tool_rank_fn fn;
    void (*started)(void *arg); /* called in the parent after all forks; or NULL */
    void *arg;
};

/**
 * tool_launch - run job->fn in job->ranks processes of this host.
 *
 * returns  0, or the exit code of the first rank that failed
 */
int tool_launch(const struct tool_job *job);

/** tool_launched - return true if a launcher started this process; by: the variable
 * that shows so. */
bool tool_launched(char *by, size_t bytes);

#endif
