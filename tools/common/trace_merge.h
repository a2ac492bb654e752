/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Merge the TRIB_TRACE files of all ranks into one, line by line. Their timestamps
 * already use the clock of rank 0.
 */
#ifndef TOOLS_COMMON_TRACE_MERGE_H
#define TOOLS_COMMON_TRACE_MERGE_H

#include <stdbool.h>
#include <stddef.h>

/**
 * tool_trace_merge - write the events of n traces into one file.
 *
 * errors   false: why[] has the error message; the file may be incomplete
 */
bool tool_trace_merge(const char *file, char *const *parts, size_t n, char *why,
                      size_t why_bytes);

/* Traces of a job whose ranks this process starts. */
struct tool_trace {
    const char *file; /* output file; NULL: no trace, both calls do nothing */
    char folder[240]; /* with a file name appended, fits a setting */
};

/**
 * tool_trace_begin - make ranks started from now on keep a trace: set TRIB_TRACE,
 * unless already set, and TRIB_TRACE_FILE.
 *
 * errors   false: why[] has the error message, e.g. the file cannot be written
 */
bool tool_trace_begin(struct tool_trace *t, char *why, size_t why_bytes);

/** tool_trace_end - merge and remove the ranks' trace files after the ranks have
 * exited. Return false with the error message in why[]. */
bool tool_trace_end(struct tool_trace *t, char *why, size_t why_bytes);

#endif
