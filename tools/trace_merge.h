/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One trace of all ranks: the files that TRIB_TRACE makes them write, put together line
 * by line. Their times are on the clock of rank 0 already.
 */
#ifndef TOOLS_TRACE_MERGE_H
#define TOOLS_TRACE_MERGE_H

#include <stdbool.h>
#include <stddef.h>

/**
 * tool_trace_merge - write the events of n traces into one file.
 *
 * errors   false: why[] has the sentence; the file may have been begun
 */
bool tool_trace_merge(const char *file, char *const *parts, size_t n, char *why,
                      size_t why_bytes);

/* The traces of a job whose ranks are started here. */
struct tool_trace {
    const char *file; /* the caller's; NULL: none is asked for, and both calls do
                       * nothing */
    char folder[240]; /* with a name behind it this fits a setting */
};

/**
 * tool_trace_begin - have ranks that are started from now on keep a trace: sets
 * TRIB_TRACE, unless it is set, and TRIB_TRACE_FILE.
 *
 * errors   false: why[] has the sentence, such as that the file cannot be written
 */
bool tool_trace_begin(struct tool_trace *t, char *why, size_t why_bytes);

/** tool_trace_end - the ranks have ended: put what they have left together, and remove
 * it; false: why[] has the sentence. */
bool tool_trace_end(struct tool_trace *t, char *why, size_t why_bytes);

#endif
