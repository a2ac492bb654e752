/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State and functions shared by the files of trib-train compare.
 */
#ifndef TRAIN_PROGRAM_COMPARE_PARTS_H
#define TRAIN_PROGRAM_COMPARE_PARTS_H

#include "train/program/compare_rows.h"
#include "train/program/own_tribd.h"
#include "train/program/train_start.h"
#include "train/program/train_table.h"

enum { COMPARE_ROWS_MAX = 128, COMPARE_PACES_MAX = 16, COMPARE_SLOW = 3 };

/* The speed of a row with stragglers. */
struct compare_pace {
    const struct compare_row *row;
    double samples_s[COMPARE_SLOW]; /* of all ranks; NAN: failed */
};

struct compare {
    const struct train_args *given; /* the command line */
    const struct compare_row *rows[COMPARE_ROWS_MAX];
    struct train_args args[COMPARE_ROWS_MAX]; /* options of each row */
    struct train_line lines[COMPARE_ROWS_MAX];
    int n, failed;
    int stopped; /* the exit code after a signal; 0: continue */
    /* on loopback, started when a row needs it; NULL: not started */
    struct own_tribd *tribd;
    bool no_tribd; /* tribd is missing; skip rows that need it */
    bool stragglers; /* the table of stragglers is wanted */
    struct compare_pace paces[COMPARE_PACES_MAX];
    int n_paces;
};

/** compare_serve - start tribd for a row that needs it; -1 after an error message. */
int compare_serve(struct compare *c, const struct compare_row *row,
                  struct train_args *args);

/** compare_args - return the options of a row; the command line overrides them. */
struct train_args compare_args(const struct train_args *given,
                               const struct compare_row *row);

/** compare_start - run one training; false: it failed, or a signal stops the
 * comparison. */
bool compare_start(struct compare *c, const struct train_job *job,
                   const struct hosts *hosts);

/** compare_is_row - return true if a word is the name of a row. */
bool compare_is_row(const char *word);

/** compare_selects - return true if `name` is among the words of a kind, or if there is
 * no such word. */
bool compare_selects(const struct train_args *args, bool (*kind)(const char *),
                     const char *name);

/** compare_names - return true if the command line names this row, or no row. */
bool compare_names(const struct train_args *args, const char *row);

/** compare_stragglers - measure the speed of rows when some ranks are slow. */
void compare_stragglers(struct compare *c);

/** compare_paces_print, compare_paces_write - print or write these speeds; -1 after an
 * error message. */
void compare_paces_print(const struct compare *c, FILE *out,
                         enum train_table_style style);
int compare_paces_write(const struct compare *c, const char *path);

/** compare_paces_list - return the number of speeds, and list them in out. */
int compare_paces_list(const struct compare *c,
                       struct train_slow out[COMPARE_PACES_MAX * COMPARE_SLOW]);

/** compare_time - time each successful row on each link. */
void compare_time(struct compare *c);

/** compare_tell - write tables, files and plots; -1 after an error message. */
int compare_tell(const struct compare *c);

#endif
