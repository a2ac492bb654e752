/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rows of trib-train compare: a system from the literature on a task, with tuned
 * hyper-parameters.
 */
#ifndef TRAIN_PROGRAM_COMPARE_ROWS_H
#define TRAIN_PROGRAM_COMPARE_ROWS_H

#include <stdbool.h>
#include <stddef.h>

/* Texts are option values; NULL: the option's default. */
struct compare_row {
    const char *task, *name;
    const char *strategy, *codec, *feedback, *parts, *optimizer, *rate, *code;
    const char *paper; /* the result reported in its paper; NULL: none */
    size_t steps; /* without --quick; 0: the task's */
    bool quick; /* also with --quick */
    bool service; /* needs tribd */
    bool named; /* trained only if named; otherwise used only for stragglers */
};

/* Default training length of a task's rows. */
struct compare_length {
    const char *task;
    size_t steps, quick_steps;
};

/** compare_row_at - return row i; NULL: i is out of range. The first row of a task is
 * the baseline of the others. */
const struct compare_row *compare_row_at(int i);

/** compare_length_of - return the length of a task's rows. */
const struct compare_length *compare_length_of(const char *task);

#endif
