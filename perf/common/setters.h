/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Setters, option rows and checks shared by the commands of trib-perf.
 */
#ifndef PERF_COMMON_SETTERS_H
#define PERF_COMMON_SETTERS_H

#include <stdbool.h>
#include <stdio.h>

#include "perf/common/sizes.h"
#include "tools/common/bind.h"
#include "tools/common/options.h"
#include "tools/common/tool_table.h"

bool perf_set_sizes(const struct tool_given *given,
                    const char *value); /* struct perf_sizes */

bool perf_set_gbps(const struct tool_given *given, const char *value); /* double */

/* clang-format off */
/* Rows shared by commands; at: offset of the field. */
#define PERF_RANKS_ROW(at) \
    {"ranks", "RANKS", tool_set_int, at, \
     .help = "number of ranks to start on this host; omit under a launcher", \
     .letter = 'n', .least = 1, .most = 4096}
#define PERF_BIND_ROW(at) \
    {"bind", "HOW", tool_set_choice, at, .help = TOOL_BIND_HELP, \
     .words = TOOL_BIND_WORDS}
#define PERF_MEMORY_ROW(at) \
    {"memory", "KIND", tool_set_choice, at, \
     .help = "alloc (trib_alloc), malloc, register [alloc]", \
     .words = "alloc malloc register"}
#define PERF_CSV_ROW(at, rows) \
    {"csv", "FILE", tool_set_text, at, .help = rows "; -: standard output"}
#define PERF_JSON_ROW(at) \
    {"json", "FILE", tool_set_text, at, \
     .help = "results with a description of the machine; -: standard output"}
#define PERF_FAIL_ABOVE_ROW(at) \
    {"fail-above", "RATIO", tool_set_number, at, \
     .help = "exit code 1 if a row is slower by this factor, beyond the spread, such " \
             "as " \
             "1.1", \
     .least = 1}
/* clang-format on */

/** perf_launched_twice - return true, after a message, if -n was given under a
 * launcher, or --bind without -n. */
bool perf_launched_twice(int ranks, enum tool_bind bind, FILE *err);

/** perf_float_sizes - check sizes of float32, or parse `preset` if none are given
 * (NULL: none). Return false after a message if a size is not a multiple of 4. */
bool perf_float_sizes(struct perf_sizes *sizes, const char *preset, FILE *err);

/** perf_outputs_differ - return false after a message if csv and json have the same
 * destination. */
bool perf_outputs_differ(const char *csv, const char *json, FILE *err);

#endif
