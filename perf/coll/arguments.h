/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Command line of the collectives.
 */
#ifndef PERF_COLL_ARGUMENTS_H
#define PERF_COLL_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <tributary.h>

#include "perf/common/sizes.h"
#include "tools/common/bind.h"
#include "tools/common/options.h"

struct perf_operation;
struct perf_result;

enum perf_memory { PERF_MEMORY_ALLOC, PERF_MEMORY_MALLOC, PERF_MEMORY_REGISTER };
enum perf_input { PERF_INPUT_NORMAL, PERF_INPUT_SMOOTH };
enum perf_call { PERF_CALL_AUTO, PERF_CALL_BLOCKING, PERF_CALL_PLAN, PERF_CALL_PAIRS };

/* The parsed command line. Strings point into argv. */
struct perf_args {
    int argc;
    char **argv;
    trib_coll_t coll;
    trib_dtype_t dtype;
    trib_op_t op;
    double parameter; /* of op; 0: op has none */
    bool named; /* a collective was given */
    bool op_named;
    bool dtype_named;
    struct perf_sizes sizes;
    double density; /* fraction of the input blocks that are nonzero */
    bool same_blocks; /* all ranks have the same nonzero blocks */
    enum perf_input input; /* distribution of float inputs */
    long iters; /* samples per size; 0: as many as fit half a second */
    long warmup; /* calls; -1: depends on the size */
    double sample_s; /* minimum duration of a sample */
    const char *codec; /* NULL: from the configuration */
    const char *feedback; /* NULL: from the configuration */
    const char *algorithm; /* NULL: from the configuration */
    char configured_codec[128];
    char configured_feedback[128];
    char configured_quorum[128];
    char configured_algorithm[64];
    const char *quorum; /* NULL: from the configuration */
    size_t chunk; /* bytes; 0: from the configuration */
    int root;
    int ranks; /* to start here; 0: started by a launcher */
    enum perf_memory memory;
    enum perf_call call;
    enum tool_bind bind;
    bool in_place;
    bool sync;
    bool rewrite;
    bool check;
    bool explain;
    bool overlap; /* --overlap; only trib-perf sets overlap_fn, declared in overlap.h */
    trib_status_t (*overlap_fn)(struct perf_operation *op, struct perf_result *out);
    const char *trace; /* trace file of all ranks; NULL: none */
    const char *csv; /* file or "-" */
    const char *json;
    const char *compare; /* result file to compare with; NULL: none */
    const char *peers; /* folder of the peer programs; "": installed ones; NULL: none */
    const char *html; /* HTML file; NULL: none */
    double fail_above; /* exit code 1 if a row is slower by this factor; 0: no limit */
    bool plot; /* print bars below the table */
    double link_gbps; /* link rate per host, for the page; 0: not given */
};

/* Options of the collectives. */
extern const struct tool_command perf_collective;

/**
 * perf_args_parse - parse the command line.
 *
 * err      receives a message only if an argument is wrong
 * returns  -1: success, *args is filled; else the exit code (0 after --help, 2:
 *          wrong)
 */
int perf_args_parse(int argc, char **argv, FILE *err, struct perf_args *args);
void perf_args_free(struct perf_args *args);

/** perf_args_init - set the defaults, and read codec, feedback, quorum and algorithm
 * from the configuration. */
void perf_args_init(struct perf_args *args, int argc, char **argv);

/** perf_codec_text, _feedback_text, _algorithm_text - return the option's value, else
 * the configured one if it applies to this operation. _of: for vectors of `count`
 * elements. */
const char *perf_codec_text_of(const struct perf_args *args, size_t count);
const char *perf_feedback_text(const struct perf_args *args);
const char *perf_codec_text(const struct perf_args *args);
const char *perf_algorithm_text(const struct perf_args *args);

/* Setters; args must begin with a struct perf_args. */
bool perf_set_codec(const struct tool_given *given, const char *value);
bool perf_set_chunk(const struct tool_given *given, const char *value);
bool perf_set_density(const struct tool_given *given, const char *value);

/* clang-format off */
#define PERF_CHUNK_ROW \
    {"chunk", "SIZE", perf_set_chunk, .help = "chunk size in bytes"}
#define PERF_DENSITY_ROW \
    {"density", "D[,same]", perf_set_density, \
     .help = "fraction of the inputs' blocks (256 elements) that are nonzero; " \
             "same: the same blocks in all ranks [1]"}
/* clang-format on */

#endif
