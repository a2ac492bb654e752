/* SPDX-License-Identifier: BSD-3-Clause */
/* Write log lines to standard error without waiting for its reader. */
#ifndef BASE_LOG_WRITE_H
#define BASE_LOG_WRITE_H

#include <stdbool.h>
#include <stddef.h>

/**
 * trib_log_write_mt - write one line to standard error if it can be written now.
 *
 * A pipe, socket or terminal with a stopped reader would block the caller, which may
 * hold a lock or serve many jobs.
 *
 * line     with its line feed; at most PIPE_BUF bytes, so that a pipe takes the line
 *          whole
 * returns  false: the line was dropped, as standard error is closed, has no reader, or
 *          is full
 * thread   any; raises no SIGPIPE
 */
bool trib_log_write_mt(const char *line, size_t bytes);

#endif
