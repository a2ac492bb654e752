/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trainings as lines of a table, of text, Markdown, CSV or JSON.
 */
#ifndef TRAIN_PROGRAM_TRAIN_TABLE_H
#define TRAIN_PROGRAM_TRAIN_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "train/program/train_run.h"

/* The time of a step where each rank is a host with a link of its own. */
struct train_link {
    const char *rate; /* "1gbit"; NULL: there is none */
    double compute_ms; /* that a gradient takes there */
    double step_ms; /* measured; or from bytes, which hide nothing */
    double hidden; /* share of a step; NAN: not measured */
    bool measured;
};

/* A training, with each of its seeds. */
struct train_line {
    const char *name; /* of the row; NULL: none */
    char what[256]; /* strategy, codec, feedback */
    const struct task_row *task;
    const struct train_result *results; /* [seeds] */
    int seeds;
    uint64_t seed; /* the first one */
    const struct train_line *dense; /* what it is compared with; NULL: nothing */
    const char *paper; /* the figure of its paper; NULL: none */
    struct train_link links[TRAIN_LINKS_MAX];
};

enum train_table_style {
    TRAIN_TABLE_TEXT,
    TRAIN_TABLE_MARKDOWN,
};

struct train_spread {
    double mean, sd; /* sd of the sample; 0 for one seed */
};

/** train_spread_of - mean and spread of a field of the results, at this offset. */
struct train_spread train_spread_of(const struct train_line *line, size_t offset);

/** train_value_of - the result: accuracy or perplexity. */
struct train_spread train_value_of(const struct train_line *line);

/** train_step_ms - mean time of a step on this machine. */
double train_step_ms(const struct train_line *line);

/** train_is_tie - true if the difference to dense is not larger than the spread of
 * both; both have several seeds. */
bool train_is_tie(const struct train_line *line);

/**
 * train_target - the result of a line's target: that of dense, less a point or 5 %.
 *
 * why      receives it in words
 * returns  false: there is nothing that the line is compared with
 */
bool train_target(const struct train_line *line, double *target_out, char *why,
                  size_t bytes);

/** train_target_s - seconds to the target behind this link, by the means of the curves
 * over the seeds; NAN: it is never reached, or not known. */
double train_target_s(const struct train_line *line, int link);

/** train_wait_ms - how long a rank waits in the library in each step; NAN: not
 * measured. */
double train_wait_ms(const struct train_link *link);

/** train_link_bits - bits a second of a rate such as "10gbit". */
double train_link_bits(const char *rate);

/** train_table_print - a table of n lines, whose columns are those that any has. */
void train_table_print(FILE *out, const struct train_line *lines, int n,
                       enum train_table_style style);

/** train_legend_print - what the columns mean; behind a table of text also what the
 * rows are. */
void train_legend_print(FILE *out, const struct train_line *lines, int n,
                        enum train_table_style style);

/* Samples a second of a row among slow ranks. */
struct train_slow {
    const char *row, *slow;
    double samples_s, of_dense; /* NAN: it failed */
};

/**
 * train_csv_write, train_json_write - the same as a file, with all figures.
 *
 * path     "-": standard output
 * slow     [n_slow] for the object "stragglers", which is left out where n_slow is 0
 * errors   -1 after a sentence on standard error
 */
int train_csv_write(const char *path, const struct train_line *lines, int n);
int train_json_write(const char *path, const struct train_line *lines, int n,
                     const struct train_slow *slow, int n_slow);

/** train_curve_write - the points of the first seed. */
int train_curve_write(const char *path, const struct train_line *line);

/** train_files_try - find out before the training whether the files of the command line
 * can be written; -1 with a sentence in error. */
int train_files_try(const struct train_args *args, char *error, size_t bytes);

#endif
