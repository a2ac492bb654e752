/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output of results: a table for people, csv and json for programs. Each command writes
 * its own rows.
 */
#ifndef PERF_COMMON_OUTPUT_H
#define PERF_COMMON_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tools/common/ticker.h"
#include "tools/common/tool_table.h"

struct perf_output {
    const char *csv_path; /* owned by the caller; "-": standard output; NULL: none */
    const char *json_path;
    struct tool_table rows; /* columns of the table */
    bool table; /* print the table; false if csv or json use standard output */
    FILE *csv; /* rows are written here; NULL: none */
    int error; /* errno of the first failed write to standard output; 0: none */
    json_t *results; /* array of rows; NULL: no json */
    char *csv_text; /* from open_memstream */
    size_t csv_bytes;
};

/**
 * perf_output_open - open the outputs. Fails early if a file cannot be written.
 *
 * owner    the caller keeps csv and json until perf_output_free
 * errors   false: why[] has the message, nothing to free
 */
bool perf_output_open(struct perf_output *o, const char *csv, const char *json,
                      char *why, size_t why_bytes);

/** perf_output_try - return whether the file can be written, without creating it.
 * false: why[] has the message. */
bool perf_output_try(const char *path, char *why, size_t why_bytes);

/** perf_output_write - write a file atomically. false: why[] has the message. */
bool perf_output_write(const char *path, const char *text, size_t bytes, char *why,
                       size_t why_bytes);

/** perf_output_json - write a document to a file, or to standard output for "-". false:
 * why[] has the message. */
bool perf_output_json(const char *path, const json_t *document, char *why,
                      size_t why_bytes);

/** perf_output_flush - flush the rows so far. perf_output_finish reports errors. */
void perf_output_flush(struct perf_output *o);

/** perf_output_us - add a cell with about four significant digits. */
void perf_output_us(struct tool_table *table, double us);

/**
 * perf_output_document - make the json document: machine, settings, run, results.
 *
 * run      description of the run; takes its reference
 * owner    the caller's reference, to pass to perf_output_finish; NULL: out of memory
 */
json_t *perf_output_document(const struct perf_output *o, int argc, char **argv,
                             json_t *run);

/**
 * perf_output_finish - put the files in place and check that all rows were written.
 *
 * document takes its reference; NULL without json
 * errors   false: why[] has the message
 */
bool perf_output_finish(struct perf_output *o, json_t *document, char *why,
                        size_t why_bytes);

/** perf_output_free - free all; unfinished files are removed. */
void perf_output_free(struct perf_output *o);

#endif
