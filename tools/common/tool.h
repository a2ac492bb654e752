/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start-up and exit of each program.
 */
#ifndef TOOLS_COMMON_TOOL_H
#define TOOLS_COMMON_TOOL_H

#include <stdbool.h>
#include <sys/resource.h>

/**
 * tool_begin - initialise the process; the first call of main.
 *
 * Opens /dev/null on descriptors 0, 1 and 2 if closed: a socket would otherwise get
 * such a number and receive printed text. Ignores SIGXFSZ, so a write beyond ulimit -f
 * fails instead of killing the program.
 */
void tool_begin(void);

/**
 * tool_signals - restore SIGCHLD and unblock all signals.
 *
 * Both are inherited over exec. If the parent ignored SIGCHLD, the kernel would drop
 * the exit codes of ranks. If it blocked SIGTERM, ranks could not be terminated. Other
 * ignored signals stay ignored, as nohup and shells intend.
 */
void tool_signals(void);

/**
 * tool_open_files - raise the soft limit of open files to the hard limit.
 *
 * before_out  the previous limits, for user programs started later; may be NULL
 */
void tool_open_files(struct rlimit *before_out);

/**
 * tool_end - check that all output was written; the last call of main.
 *
 * tool     prefix of the error message, such as "trib-info"
 * code     the exit code so far
 * returns  code, or 1 instead of 0 if a write to standard output failed
 */
int tool_end(const char *tool, int code);

/**
 * tool_flushed - flush stdout. Return false and set errno if any output was not
 * written. For processes that do not exit through main.
 */
bool tool_flushed(void);

#endif
