/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results become a comparison of two, a picture in the terminal, or a page.
 *
 *     result_file.c      a document of --json -> struct report_file
 *     against.c          the rows of two documents beside each other
 *     terminal_bars.c    bars below a table
 *     measured.c         all of these behind a measurement
 *     report_commands.c  trib-perf compare and report
 *     peers_beside.h     --peers
 *     html_page.h        a page of results: page_parts.h, svg_chart.h, svg_lanes.h
 */
#ifndef PERF_REPORT_PERF_REPORT_H
#define PERF_REPORT_PERF_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tools/options.h"

struct perf_args;

/* Rows ----------------------------------------------------------------------------- */

/* A row of a document: a number that it does not have is NAN. */
struct report_row {
    const char *name; /* what sets rows of one size apart, such as a way; or "" */
    double bytes;
    double p50, p99; /* µs */
    double lower, upper; /* µs, the spread of the samples: the quartiles */
    double GBps; /* bus bandwidth, else what has moved in a second */
    double nmse;
    double element_bytes; /* that a coded float32 takes */
    const json_t *overlap; /* of trib-perf allreduce --overlap; NULL: not measured */
};

struct report_file {
    const char *path; /* of the caller */
    json_t *document;
    struct report_row *rows;
    size_t n;
    size_t own; /* of the rows, the first ones; those of --peers follow */
    struct report_row *limits; /* rates that nothing dense can pass, by name: of one
                                * size, or with bytes 0 of all */
    size_t n_limits;
};

/**
 * report_file_open - read a document that --json has written.
 *
 * owner    the caller calls report_file_close, and keeps path until then
 * errors   false: why[] has the sentence, nothing to close
 */
bool report_file_open(const char *path, struct report_file *out, char *why,
                      size_t why_bytes);

/** report_file_take - likewise, a document in memory; its reference is not taken. */
bool report_file_take(json_t *document, const char *path, struct report_file *out,
                      char *why, size_t why_bytes);

void report_file_close(struct report_file *file);

/** report_text - a text of an object in the document, such as "run", "codec"; "" where
 * it is none. */
const char *report_text(const struct report_file *file, const char *object,
                        const char *key);

/** report_title - "allreduce f32 sum, codec int8, 4 ranks"; returns text. */
char *report_title(const struct report_file *file, char *text, size_t bytes);

/* Comparison ----------------------------------------------------------------------- */

struct report_verdict {
    size_t rows; /* that both have */
    size_t slower, faster; /* beyond the spread */
    size_t above; /* slower, and by more than the limit */
};

/**
 * report_against - print the rows that both have, of at most 80 columns.
 *
 * limit    of new over old; 0: none
 * errors   false: they have no row in common, or no times; why[] has the sentence
 */
bool report_against(const struct report_file *old, const struct report_file *new,
                    double limit, FILE *f, struct report_verdict *out, char *why,
                    size_t why_bytes);

/** report_say_above - a sentence on standard error where a row is above the limit. */
void report_say_above(const struct report_verdict *verdict, double limit,
                      const char *old);

/* The terminal --------------------------------------------------------------------- */

/** report_utf8 - true if the terminal's texts are in UTF-8. */
bool report_utf8(void);

/** report_bars - draw time and bandwidth of each row, 60 columns wide, in blocks or in
 * ASCII. */
void report_bars(const struct report_row *rows, size_t n, bool utf8, FILE *f);

/* Behind a measurement ------------------------------------------------------------- */

/** report_wanted - true if the options ask for more than a table. */
bool report_wanted(const struct perf_args *args);

/**
 * report_prepare - before an hour of measuring: read what to compare with.
 *
 * errors   false: why[] has the sentence, nothing to close
 */
bool report_prepare(const struct perf_args *args, struct report_file *old, char *why,
                    size_t why_bytes);

/** report_measured - do what the options ask for; returns the exit code. */
int report_measured(const struct perf_args *args, json_t *document,
                    const struct report_file *old);

/* Commands ------------------------------------------------------------------------- */

extern const struct tool_command compare_command;
extern const struct tool_command report_command;
int compare_main(int argc, char **argv);
int report_main(int argc, char **argv);

#endif
