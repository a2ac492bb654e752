/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-train compare: rows of compare_rows.def side by side.
 */
#ifndef TRAIN_PROGRAM_COMPARE_H
#define TRAIN_PROGRAM_COMPARE_H

#include "train/program/train_args.h"
#include "train/program/train_table.h"

/** compare_main - trib-train compare; returns the exit code. */
int compare_main(const struct train_args *args);

/* In compare_plot.c */

/**
 * compare_plot - the pictures of n lines of one task, by gnuplot, into a folder:
 * bytes-TASK.png, seconds-TASK.png, hidden-TASK.png, and what they are drawn from.
 *
 * returns  -1 after a sentence on standard error
 */
int compare_plot(const char *folder, const struct train_line *lines, int n);

#endif
