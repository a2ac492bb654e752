/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-perf groups, neighbors, store: operations that are not one collective of one
 * vector, compared with an all-reduce of the same bytes.
 *
 *     versus.c          rounds of all ways
 *     versus_options.c  command line
 *     versus_report.c    table, csv, json
 *     tensor_groups.c   the gradients of ResNet-50 as one group
 *     neighbors.c       steps of push-sum
 *     store_ways.c      pushes to a vector in tribd, and pulls
 *     vectors.c         memory of each kind
 *
 * A round runs each way once and the all-reduce twice: the difference of the two is the
 * noise. Times are of the slowest rank.
 */
#ifndef PERF_VERSUS_VERSUS_H
#define PERF_VERSUS_VERSUS_H

#include "perf/coll/arguments.h"
#include "perf/common/output.h"
#include "perf/common/samples.h"
#include "tools/common/options.h"

enum { VERSUS_WAYS_MAX = 8, VERSUS_ROUNDS_MAX = 100000, VERSUS_OPTIONS = 10 };

/* Options of all kinds. */
extern const struct tool_option versus_options[VERSUS_OPTIONS];

struct versus;

/* A kind of operation: groups, neighbors or store. */
struct versus_kind {
    const char *name; /* as in "trib-perf NAME" */
    struct tool_command command;
    const char *sizes; /* default sizes in bytes; NULL: the kind's own size */
    const char *ways[VERSUS_WAYS_MAX]; /* without the all-reduce */
    int n_ways;
    bool is_store; /* --rule and --codec only apply to the store */
    /* Open vectors of b->bytes, or of the kind's own size, written to b->bytes. */
    trib_status_t (*open)(struct versus *b);
    trib_status_t (*run)(struct versus *b, int way);
    void (*close)(struct versus *b);
    /* Write a line to print below the table; NULL: none. */
    void (*tell)(struct versus *b, char *text, size_t text_bytes);
};

/* The parsed command line. Strings point into argv. */
struct versus_args {
    struct perf_args each; /* first, for the setters of arguments.c */
    const struct versus_kind *kind;
    long rounds;
    const char *rule; /* NULL: the store's default */
};

/* State of one size. */
struct versus {
    const struct versus_args *args;
    trib_comm_t *comm;
    size_t bytes;
    void *state; /* the kind's */
    char why[512]; /* message of a failure, if not in trib_last_error */
};

struct versus_row {
    const char *way;
    size_t bytes;
    struct perf_summary us;
    struct perf_summary ratio; /* to the first all-reduce of the same round */
};

extern const struct versus_kind versus_groups, versus_neighbors, versus_store;

/** versus_main - run a kind; argv[1] is its name. Return the exit code. */
int versus_main(int argc, char **argv);

/* --- vectors.c --- */

/** versus_memory - allocate `bytes` zeros in the kind of memory that args name.
 * versus_memory_free frees them. */
trib_status_t versus_memory(struct versus *b, size_t bytes, void **out);
void versus_memory_free(struct versus *b, void *memory);

/* --- versus_report.c --- */

struct versus_report {
    const struct versus_args *args;
    int ranks;
    struct perf_output out; /* the caller frees it */
};

/** versus_report_open - open the outputs that args ask for, and write their heads.
 * false: why[] has the message. */
bool versus_report_open(struct versus_report *r, char *why, size_t why_bytes);
void versus_report_add(struct versus_report *r, const struct versus_row *row);

/** versus_report_finish - tell: a line to print below the table; "": none. false: why[]
 * has the message. */
bool versus_report_finish(struct versus_report *r, const char *tell, char *why,
                          size_t why_bytes);

#endif
