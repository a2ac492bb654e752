/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-train compare: a table of the rows of compare_rows.def.
 */
#ifndef TRAIN_PROGRAM_COMPARE_H
#define TRAIN_PROGRAM_COMPARE_H

#include "train/program/train_args.h"
#include "train/program/train_table.h"

/** compare_main - run trib-train compare; return the exit code. */
int compare_main(const struct train_args *args);

/* In compare_plot.c. */

/**
 * compare_plot - plot n lines of one task with gnuplot. Writes bytes-TASK.png,
 * seconds-TASK.png, hidden-TASK.png and their data into a folder.
 *
 * returns  -1 after an error message on standard error
 */
int compare_plot(const char *folder, const struct train_line *lines, int n);

#endif
