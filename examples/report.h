/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 0's report of a training run: a progress line, a CSV file, the result.
 */
#ifndef TRIB_EXAMPLES_REPORT_H
#define TRIB_EXAMPLES_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "examples/train_options.h"

/* The state of the run. Counters are of this rank and begin with the first step. */
struct report_state {
    size_t step; /* finished steps */
    size_t steps;
    uint64_t wire_bytes; /* sent for gradients */
    uint64_t step_ns; /* time in steps, without evaluations */
    uint64_t library_ns; /* of that, time in calls of the library */
    double loss; /* of the last batch */
    double accuracy; /* on the test images, 0 to 1, as last measured */
};

struct report_result {
    struct report_state end;
    int ranks;
    size_t n_params;
    uint64_t weights_hash; /* of rank 0 */
    int identical; /* all ranks have this hash */
};

struct report {
    const char *codec;
    FILE *csv; /* NULL: none */
    enum train_progress progress; /* never AUTO */
    int shown; /* lines of progress */
    uint64_t shown_ns; /* clock when progress was last shown */
};

/** report_clock - monotonic time in ns. */
uint64_t report_clock(void);

/** report_open - -1 where a file cannot be made: `error` receives a sentence. */
int report_open(struct report *report, const struct train_options *options, char *error,
                size_t bytes);

/** report_step - show progress: ten times a second, in a file every two seconds. */
void report_step(struct report *report, const struct report_state *state);

/** report_point - the accuracy was measured: a line of the CSV file. */
void report_point(struct report *report, const struct report_state *state);

/**
 * report_finish - print the result and close the files.
 *
 * errors   -1 where a file could not be written, said on standard error
 */
int report_finish(struct report *report, const struct train_options *options,
                  const struct report_result *result);

/** report_close - close what report_finish has not. */
void report_close(struct report *report);

#endif
