/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Columns of results: a row goes to the table, to csv and to json by one list.
 */
#ifndef PERF_COMMON_COLUMNS_H
#define PERF_COMMON_COLUMNS_H

#include <jansson.h>
#include <stddef.h>

#include "perf/common/output.h"

enum perf_type {
    PERF_TEXT, /* const char * */
    PERF_QUOTED, /* const char *, in quotation marks in csv; contains none */
    PERF_FLAG, /* bool; 0 or 1 in csv */
    PERF_INT,
    PERF_UINT32,
    PERF_UINT64,
    PERF_LONG,
    PERF_SIZE, /* size_t */
    PERF_BYTES, /* size_t; "64 KiB" in the table */
    PERF_FIXED, /* double, with this number of digits after the point */
    PERF_GENERAL, /* double, with this number of significant digits */
    PERF_US, /* double; four significant digits in the table */
    PERF_COUNT, /* double; an integer in json */
    PERF_PAIR /* two doubles, such as a rate and its ratio to another; only in the
               * table. If they are NaN: "-" and nothing */
};

enum perf_column_flags {
    PERF_NO_CSV = 1,
    PERF_NO_JSON = 2,
    PERF_OPTIONAL = 4, /* NaN or infinity: "-", an empty cell of csv, null */
    PERF_IF_A = 8, /* only if the report has this flag; else an empty cell of csv */
    PERF_IF_B = 16,
    PERF_IF_C = 32,
    PERF_TITLE = 64 /* PERF_TEXT or PERF_QUOTED without a head: in the table on the line
                     * above a row if the terminal is narrow, else after the row */
};

struct perf_column {
    const char *key; /* in csv and json; NULL: in neither */
    const char *head, *unit; /* in the table; NULL: not in it */
    int width, rank; /* as in struct tool_column */
    enum perf_type type;
    int digits, shown; /* in csv, in the table */
    unsigned flags;
    size_t offset; /* in the row */
};

#define PERF_UNSHOWN NULL, NULL, 0, 0

/* The columns of a command. */
struct perf_columns {
    const struct perf_column *column;
    size_t n;
    unsigned conditions; /* of PERF_IF_A, ..., that hold */
};

/** perf_columns_head - write the heads of the open outputs, and flush them. */
void perf_columns_head(struct perf_output *o, const struct perf_columns *c);

/**
 * perf_columns_row - write a row to the open outputs, and flush them.
 *
 * returns  the json object, to add members; owned by o->results; NULL: no json
 */
json_t *perf_columns_row(struct perf_output *o, const struct perf_columns *c,
                         const void *row);

#endif
