/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trainings as rows of a table: text, Markdown, CSV or JSON.
 */
#ifndef TRAIN_PROGRAM_TRAIN_TABLE_H
#define TRAIN_PROGRAM_TRAIN_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "train/program/train_run.h"

/* The time of a step when each rank is a host with its own link. */
struct train_link {
    const char *rate; /* such as "1gbit"; NULL: no link */
    double compute_ms; /* time of a gradient */
    double step_ms; /* measured, or estimated from bytes without overlap */
    double hidden; /* as in train_result; NAN: not measured */
    bool measured;
};

/* A training with all its seeds. */
struct train_line {
    const char *name; /* name of the row; NULL: none */
    char what[256]; /* strategy, codec, feedback */
    const struct task_row *task;
    const struct train_result *results; /* [seeds] */
    int seeds;
    uint64_t seed; /* the first seed */
    const struct train_line *dense; /* the baseline; NULL: none */
    const char *paper; /* the result in its paper; NULL: none */
    struct train_link links[TRAIN_LINKS_MAX];
};

enum train_table_style {
    TRAIN_TABLE_TEXT,
    TRAIN_TABLE_MARKDOWN,
};

struct train_spread {
    double mean, sd; /* sd: sample standard deviation; 0 for one seed */
};

/** train_spread_of - return mean and spread of a result's field at this offset. */
struct train_spread train_spread_of(const struct train_line *line, size_t offset);

/** train_value_of - return the result: accuracy or perplexity. */
struct train_spread train_value_of(const struct train_line *line);

/** train_step_ms - return the mean time of a step on this machine. */
double train_step_ms(const struct train_line *line);

/** train_is_tie - return true if the difference to dense is within the spread of both.
 * Both need several seeds. */
bool train_is_tie(const struct train_line *line);

/**
 * train_target - compute the target result: dense, less one point or 5 %.
 *
 * why      receives a description
 * returns  false: the line has no baseline
 */
bool train_target(const struct train_line *line, double *target_out, char *why,
                  size_t bytes);

/** train_target_s - return the seconds to the target on this link, from the mean
 * curves; NAN: never reached, or unknown. */
double train_target_s(const struct train_line *line, int link);

/** train_wait_ms - return the time per step that a rank spends in the library; NAN: not
 * measured. */
double train_wait_ms(const struct train_link *link);

/** train_link_bits - return the bits per second of a rate such as "10gbit". */
double train_link_bits(const char *rate);

/** train_table_print - print a table of n lines, with the columns that any line has. */
void train_table_print(FILE *out, const struct train_line *lines, int n,
                       enum train_table_style style);

/** train_legend_print - explain the columns; for a text table also list the rows. */
void train_legend_print(FILE *out, const struct train_line *lines, int n,
                        enum train_table_style style);

/* The speed of a row with slow ranks, in samples per second. */
struct train_slow {
    const char *row, *slow;
    double samples_s, of_dense; /* NAN: failed */
};

/**
 * train_file_open, train_file_close - create a file, and end it when all is written.
 *
 * path     "-": standard output
 * errors   NULL, -1 after an error message on standard error
 */
FILE *train_file_open(const char *path);
int train_file_close(FILE *file, const char *path);

/**
 * train_csv_write, train_json_write - write all figures to a file.
 *
 * path     "-": standard output
 * slow     [n_slow] the object "stragglers", omitted if n_slow is 0
 * errors   -1 after an error message on standard error
 */
int train_csv_write(const char *path, const struct train_line *lines, int n);
int train_json_write(const char *path, const struct train_line *lines, int n,
                     const struct train_slow *slow, int n_slow);

/** train_curve_write - write the points of the first seed. */
int train_curve_write(const char *path, const struct train_line *line);

/** train_files_try - check before the training that the output files can be
 * written. */
trib_status_t train_files_try(const struct train_args *args, struct trib_error *err);

#endif
