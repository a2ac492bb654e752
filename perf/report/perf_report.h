/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Present results: a comparison of two, bars in the terminal, or a page.
 *
 *     result_file.c      a --json document -> struct report_file
 *     against.c          compare the rows of two documents
 *     terminal_bars.c    bars below a table
 *     measured.c         all of these after a measurement
 *     report_commands.c  trib-perf compare and report
 *     peers_launch.h     --peers
 *     html_page.h        a page of results: page_parts.h, svg_chart.h, svg_lanes.h
 */
#ifndef PERF_REPORT_PERF_REPORT_H
#define PERF_REPORT_PERF_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "perf/coll/arguments.h"
#include "tools/common/options.h"

struct perf_args;

/* --- rows --- */

/* A row of a document; missing numbers are NAN. */
struct report_row {
    const char *name; /* distinguishes rows of the same size, such as ways; or "" */
    double bytes;
    double p50, p99; /* µs */
    double lower, upper; /* µs; quartiles of the samples */
    double GBps; /* bus bandwidth, or else bytes moved per second */
    double nmse;
    double element_bytes; /* encoded bytes per float32 */
    const json_t *overlap; /* of trib-perf allreduce --overlap; NULL: none */
};

struct report_file {
    const char *path; /* owned by the caller */
    json_t *document;
    struct report_row *rows;
    size_t n;
    size_t own; /* number of Tributary's rows, which come first; rows of --peers
                 * follow */
    struct report_row *limits; /* upper bounds of dense rates, by name; bytes 0: for all
                                * sizes */
    size_t n_limits;
};

/**
 * report_file_open - read a document written by --json.
 *
 * owner    the caller calls report_file_close, and keeps path until then
 * errors   false: why[] has the message, nothing to close
 */
bool report_file_open(const char *path, struct report_file *out, char *why,
                      size_t why_bytes);

/** report_file_take - use a document in memory; takes no reference. */
bool report_file_take(json_t *document, const char *path, struct report_file *out,
                      char *why, size_t why_bytes);

void report_file_close(struct report_file *file);

/** report_text - return a string of an object in the document, such as "run", "codec";
 * "" if it is not a string. */
const char *report_text(const struct report_file *file, const char *object,
                        const char *key);

/** report_title - write "allreduce f32 sum, codec int8, 4 ranks"; returns text. */
char *report_title(const struct report_file *file, char *text, size_t bytes);

/* --- comparison --- */

struct report_verdict {
    size_t rows; /* rows in both documents */
    size_t slower, faster; /* beyond the spread */
    size_t above; /* slower, and beyond the limit */
};

/**
 * report_against - print the rows that both documents have, in at most 80 columns.
 *
 * limit    of new over old time; 0: none
 * errors   false: no row in common, or no times; why[] has the message
 */
bool report_against(const struct report_file *old, const struct report_file *new,
                    double limit, FILE *f, struct report_verdict *out, char *why,
                    size_t why_bytes);

/** report_say_above - print a message on stderr if a row is above the limit. */
void report_say_above(const struct report_verdict *verdict, double limit,
                      const char *old);

/* --- terminal --- */

/** report_utf8 - return true if the terminal uses UTF-8. */
bool report_utf8(void);

/** report_bars - draw time and bandwidth of each row, 60 columns wide, with block
 * characters or ASCII. */
void report_bars(const struct report_row *rows, size_t n, bool utf8, FILE *f);

/* --- after a measurement --- */

/** report_wanted - return true if the options ask for more than a table. */
bool report_wanted(const struct perf_args *args);

/**
 * report_prepare - read the document to compare with, before an hour of measuring.
 *
 * errors   false: why[] has the message, nothing to close
 */
bool report_prepare(const struct perf_args *args, struct report_file *old, char *why,
                    size_t why_bytes);

/** report_measured - do what the options ask for. Return the exit code. */
int report_measured(const struct perf_args *args, json_t *document,
                    const struct report_file *old);

/* --- commands --- */

extern const struct tool_command compare_command;
extern const struct tool_command report_command;
int compare_main(int argc, char **argv);
int report_main(int argc, char **argv);

#endif
