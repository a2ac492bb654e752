/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts of a training that depend on its number of steps and on each other.
 */
#ifndef TRAIN_PROGRAM_TRAIN_TEXTS_H
#define TRAIN_PROGRAM_TRAIN_TEXTS_H

#include <stddef.h>

#include "train/program/train_args.h"
#include "train/tasks/task.h"

enum { TRAIN_TEXT_BYTES = 512 };

/* Storage for the texts of a trib_trainer_desc_t. */
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
 * In each text a percentage such as warmup=2% means that share of the steps, at least
 * 4. A plain number as rate becomes a linear decay with a warm-up of 5 % of the steps;
 * other rates get steps=. The default optimizer is the task's, or plain sgd if the
 * feedback has momentum.
 *
 * steps    of the run
 * errors   TRIB_ERR_INVALID with an error message in err
 */
trib_status_t train_texts_make(const struct train_args *args,
                               const struct task_row *row, const struct task *task,
                               size_t steps, struct train_texts *texts,
                               trib_trainer_desc_t *desc, struct trib_error *err);

#endif
