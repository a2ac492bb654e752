/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output of results: a table for people, csv and json for programs. The writer of each
 * command decides on the rows.
 */
#ifndef PERF_OUTPUT_H
#define PERF_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tools/ticker.h"
#include "tools/tool_table.h"

struct perf_output {
    const char *csv_path; /* of the caller; "-" is standard output; NULL: none */
    const char *json_path;
    struct tool_table rows; /* its columns */
    bool table; /* on standard output, unless csv or json goes there */
    FILE *csv; /* rows are printed here; NULL: none */
    int error; /* errno of the first row that standard output did not take; 0: none */
    json_t *results; /* an array of rows; NULL: none are kept */
    char *csv_text; /* of open_memstream */
    size_t csv_bytes;
};

/**
 * perf_output_open - the outputs that csv and json ask for, tried out first.
 *
 * owner    the caller keeps both texts until perf_output_free
 * errors   false: why[] has the sentence, nothing to free
 */
bool perf_output_open(struct perf_output *o, const char *csv, const char *json,
                      char *why, size_t why_bytes);

/** perf_output_try - can a file be written there? Nothing stays; false: why[] has the
 * sentence. */
bool perf_output_try(const char *path, char *why, size_t why_bytes);

/** perf_output_write - a file that appears whole or not at all; likewise. */
bool perf_output_write(const char *path, const char *text, size_t bytes, char *why,
                       size_t why_bytes);

/** perf_output_flush - show the rows so far; what goes wrong is told by
 * perf_output_finish. */
void perf_output_flush(struct perf_output *o);

/** perf_output_us - a cell of the table: four digits that count, as far as it goes. */
void perf_output_us(struct tool_table *table, double us);

/**
 * perf_output_document - what json says: machine, settings, run, results.
 *
 * run      what was measured; its reference is taken
 * owner    the caller's reference, to be given to perf_output_finish; NULL: no memory
 */
json_t *perf_output_document(const struct perf_output *o, int argc, char **argv,
                             json_t *run);

/**
 * perf_output_finish - put the files in place; has standard output taken all rows?
 *
 * document its reference is taken; NULL where no json was asked for
 * errors   false: why[] has the sentence
 */
bool perf_output_finish(struct perf_output *o, json_t *document, char *why,
                        size_t why_bytes);

/** perf_output_free - unfinished files leave nothing behind. */
void perf_output_free(struct perf_output *o);

#endif
