/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts of a training that follow from its number of steps and from each other.
 */
#ifndef TRAIN_PROGRAM_TRAIN_TEXTS_H
#define TRAIN_PROGRAM_TRAIN_TEXTS_H

#include <stddef.h>

#include "train/program/train_args.h"
#include "train/tasks/task.h"

enum { TRAIN_TEXT_BYTES = 512 };

/* What trib_trainer_desc_t points to. */
struct train_texts {
    char strategy[TRAIN_TEXT_BYTES], codec[TRAIN_TEXT_BYTES],
        feedback[TRAIN_TEXT_BYTES];
    char optimizer[TRAIN_TEXT_BYTES], rate[TRAIN_TEXT_BYTES];
    char part_codecs[TASK_PARTS_MAX][128];
    trib_part_t parts[TASK_PARTS_MAX];
};

/**
 * train_texts_make - fill a trainer's description from the command line.
 *
 * In each text a number of percent is that share of the steps, at least 4: warmup=2%.
 * A rate that is a number rises for 5 % of the steps and falls in a line; any other one
 * gets steps=.
 * Without --optimizer it is the task's; or plain sgd where the feedback has momentum.
 *
 * steps    of the run
 * errors   -1 with a sentence in error
 */
int train_texts_make(const struct train_args *args, const struct task_row *row,
                     const struct task *task, size_t steps, struct train_texts *texts,
                     trib_trainer_desc_t *desc, char *error, size_t bytes);

#endif
