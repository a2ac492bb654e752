/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state and the functions that the files of trib-train compare share.
 */
#ifndef TRAIN_PROGRAM_COMPARE_PARTS_H
#define TRAIN_PROGRAM_COMPARE_PARTS_H

#include "train/program/compare_rows.h"
#include "train/program/own_tribd.h"
#include "train/program/train_start.h"
#include "train/program/train_table.h"

enum { COMPARE_ROWS_MAX = 128, COMPARE_PACES_MAX = 16, COMPARE_SLOW = 3 };

/* A row among stragglers. */
struct compare_pace {
    const struct compare_row *row;
    double samples_s[COMPARE_SLOW]; /* of all ranks; NAN: it failed */
};

struct compare {
    const struct train_args *given; /* the command line */
    const struct compare_row *rows[COMPARE_ROWS_MAX];
    struct train_args args[COMPARE_ROWS_MAX]; /* of the rows */
    struct train_line lines[COMPARE_ROWS_MAX];
    int n, failed;
    int stopped; /* the exit code after a signal to end; 0: go on */
    struct own_tribd *tribd; /* on loopback, once a row needs it; NULL: none yet */
    bool no_tribd; /* rows that need one are left out */
    bool stragglers; /* their table is wanted */
    struct compare_pace paces[COMPARE_PACES_MAX];
    int n_paces;
};

/** compare_serve - give a row the tribd that it needs; -1 after a sentence. */
int compare_serve(struct compare *c, const struct compare_row *row,
                  struct train_args *args);

/** compare_args - the options of a row; those of the command line win. */
struct train_args compare_args(const struct train_args *given,
                               const struct compare_row *row);

/** compare_start - run one of its trainings; false: it failed, or a signal ends all. */
bool compare_start(struct compare *c, const struct train_job *job,
                   const struct hosts *hosts);

/** compare_names - true if the command line names this row, or no row at all. */
bool compare_names(const struct train_args *args, const char *row);

/** compare_stragglers - measure how fast rows are with slow ranks beside others. */
void compare_stragglers(struct compare *c);

/** compare_paces_print, compare_paces_write - what that gave; -1 after a sentence. */
void compare_paces_print(const struct compare *c, FILE *out,
                         enum train_table_style style);
int compare_paces_write(const struct compare *c, const char *path);

/** compare_paces_list - the same as figures; returns how many. */
int compare_paces_list(const struct compare *c,
                       struct train_slow out[COMPARE_PACES_MAX * COMPARE_SLOW]);

/** compare_time - time each row that has trained, behind each link. */
void compare_time(struct compare *c);

/** compare_tell - tables, files and pictures; -1 after a sentence. */
int compare_tell(const struct compare *c);

#endif
