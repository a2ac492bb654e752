/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of trib-train compare share.
 */
#ifndef TRAIN_PROGRAM_COMPARE_PARTS_H
#define TRAIN_PROGRAM_COMPARE_PARTS_H

#include "train/program/compare_rows.h"
#include "train/program/train_table.h"

enum { COMPARE_ROWS_MAX = 128 };

struct compare {
    const struct train_args *given; /* the command line */
    const struct compare_row *rows[COMPARE_ROWS_MAX];
    struct train_args args[COMPARE_ROWS_MAX]; /* of the rows */
    struct train_line lines[COMPARE_ROWS_MAX];
    int n, failed;
};

/** compare_time - time each row that has trained, behind each link. */
void compare_time(struct compare *c);

/** compare_tell - tables, files and pictures; -1 after a sentence. */
int compare_tell(const struct compare *c);

#endif
