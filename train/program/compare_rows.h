/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rows of trib-train compare: a system of the literature on a task, with the
 * hyper-parameters that were tuned for it.
 */
#ifndef TRAIN_PROGRAM_COMPARE_ROWS_H
#define TRAIN_PROGRAM_COMPARE_ROWS_H

#include <stdbool.h>
#include <stddef.h>

/* Texts are those of the options; NULL: the option's default. */
struct compare_row {
    const char *task, *name;
    const char *strategy, *codec, *feedback, *parts, *optimizer, *rate, *code;
    const char *paper; /* what its paper reaches, and where; NULL: no figure */
    size_t steps; /* of the long form; 0: the task's */
    bool quick; /* also in the quick form */
    bool service; /* it needs tribd */
    bool named; /* it trains where it is named; else it is among stragglers alone */
};

/* How long the rows of a task train, unless they say so. */
struct compare_length {
    const char *task;
    size_t steps, quick_steps;
};

/** compare_row_at - the row of number i; NULL: there are no more. The first row of a
 * task is that with which the others are compared. */
const struct compare_row *compare_row_at(int i);

/** compare_length_of - of a task. */
const struct compare_length *compare_length_of(const char *task);

#endif
