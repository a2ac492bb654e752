/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the programs of this project do first: they do not rely on the signals and limits
 * that their parent happened to leave to them.
 */
#ifndef TOOLS_START_H
#define TOOLS_START_H

#include <signal.h>
#include <sys/resource.h>

/**
 * start_signals - children can be waited for, and no signal is blocked.
 *
 * Both are inherited over exec. Where the parent ignored SIGCHLD, the kernel would drop
 * the exit codes of ranks; where it blocked SIGTERM, ranks could not be ended. Other
 * signals that the parent ignores stay ignored: nohup and shells mean that.
 */
static inline void start_signals(void)
{
    sigset_t none;

    (void)signal(SIGCHLD, SIG_DFL);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/**
 * start_open_files - raise the soft limit of open files to the hard one.
 *
 * before_out  the limits as they were, for programs of the user that are started; may be
 *             NULL
 */
static inline void start_open_files(struct rlimit *before_out)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        struct rlimit raised = {limit.rlim_max, limit.rlim_max};
        (void)setrlimit(RLIMIT_NOFILE, &raised);
    }
    if (before_out)
        *before_out = limit;
}

#endif
