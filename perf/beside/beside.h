/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-perf groups, neighbors, store: operations that are not one collective of one
 * vector, compared with an all-reduce of the same bytes.
 *
 *     beside.c          rounds of all ways
 *     beside_options.c  command line
 *     besidereport.c    table, csv, json
 *     tensor_groups.c   the gradients of ResNet-50 as one group
 *     neighbors.c       steps of push-sum
 *     store_ways.c      pushes to a vector in tribd, and pulls
 *     vectors.c         memory of each kind
 *
 * A round runs each way once and the all-reduce twice: the difference of the two is the
 * noise. Times are of the slowest rank.
 */
#ifndef PERF_BESIDE_BESIDE_H
#define PERF_BESIDE_BESIDE_H

#include "perf/coll/arguments.h"
#include "perf/common/output.h"
#include "perf/common/samples.h"
#include "tools/common/options.h"

enum { BESIDE_WAYS_MAX = 8, BESIDE_ROUNDS_MAX = 100000, BESIDE_OPTIONS = 10 };

/* Options of all kinds. */
extern const struct tool_option beside_options[BESIDE_OPTIONS];

struct beside;

/* A kind of operation: groups, neighbors or store. */
struct beside_kind {
    const char *name; /* as in "trib-perf NAME" */
    struct tool_command command;
    const char *sizes; /* default sizes in bytes; NULL: the kind's own size */
    const char *ways[BESIDE_WAYS_MAX]; /* without the all-reduce */
    int n_ways;
    bool is_store; /* --rule and --codec only apply to the store */
    /* Open vectors of b->bytes, or of the kind's own size, written to b->bytes. */
    trib_status_t (*open)(struct beside *b);
    trib_status_t (*run)(struct beside *b, int way);
    void (*close)(struct beside *b);
    /* Write a line to print below the table; NULL: none. */
    void (*tell)(struct beside *b, char *text, size_t text_bytes);
};

/* The parsed command line. Strings point into argv. */
struct beside_args {
    struct perf_args each; /* first, for the setters of arguments.c */
    const struct beside_kind *kind;
    long rounds;
    const char *rule; /* NULL: the store's default */
};

/* State of one size. */
struct beside {
    const struct beside_args *args;
    trib_comm_t *comm;
    size_t bytes;
    void *state; /* the kind's */
    char why[512]; /* message of a failure, if not in trib_last_error */
};

struct beside_row {
    const char *way;
    size_t bytes;
    struct perf_summary us;
    struct perf_summary ratio; /* to the first all-reduce of the same round */
};

extern const struct beside_kind beside_groups, beside_neighbors, beside_store;

/** beside_main - run a kind; argv[1] is its name. Return the exit code. */
int beside_main(int argc, char **argv);

/* --- vectors.c --- */

/** beside_memory - allocate `bytes` zeros in the kind of memory that args name.
 * beside_memory_free frees them. */
trib_status_t beside_memory(struct beside *b, size_t bytes, void **out);
void beside_memory_free(struct beside *b, void *memory);

/* --- besidereport.c --- */

struct beside_report {
    const struct beside_args *args;
    int ranks;
    struct perf_output out; /* the caller frees it */
};

/** beside_report_open - open the outputs that args ask for, and write their heads.
 * false: why[] has the message. */
bool beside_report_open(struct beside_report *r, char *why, size_t why_bytes);
void beside_report_add(struct beside_report *r, const struct beside_row *row);

/** beside_report_finish - tell: a line to print below the table; "": none. false: why[]
 * has the message. */
bool beside_report_finish(struct beside_report *r, const char *tell, char *why,
                          size_t why_bytes);

#endif
