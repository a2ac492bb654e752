/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How each program of Tributary begins and ends.
 */
#ifndef TOOLS_TOOL_H
#define TOOLS_TOOL_H

#include <stdbool.h>
#include <sys/resource.h>

/**
 * tool_begin - the first call of main.
 *
 * Where descriptor 0, 1 or 2 is closed it becomes /dev/null: else a socket would get
 * that number, and what is printed would go into it. A write beyond ulimit -f fails
 * from now on instead of ending the program (SIGXFSZ is ignored).
 */
void tool_begin(void);

/**
 * tool_signals - children can be waited for, and no signal is blocked.
 *
 * Both are inherited over exec. Where the parent ignored SIGCHLD, the kernel would drop
 * the exit codes of ranks; where it blocked SIGTERM, ranks could not be ended. Other
 * signals that the parent ignores stay ignored: nohup and shells mean that.
 */
void tool_signals(void);

/**
 * tool_open_files - raise the soft limit of open files to the hard one.
 *
 * before_out  the limits as they were, for programs of the user that are started; may
 *             be NULL
 */
void tool_open_files(struct rlimit *before_out);

/**
 * tool_end - the last call of main: has all that was printed been written?
 *
 * tool     whose name stands before the sentence on standard error, such as "trib-info"
 * code     the exit code so far
 * returns  code, or 1 in place of 0 where standard output took not all
 */
int tool_end(const char *tool, int code);

/**
 * tool_flushed - write what stdio still holds; false and errno where standard output
 * did not take all that was printed. For processes that end otherwise than by main.
 */
bool tool_flushed(void);

#endif
