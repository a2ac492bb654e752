/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What there is: tasks, strategies, codecs, rows of the comparison.
 */
#ifndef TRAIN_PROGRAM_TRAIN_LIST_H
#define TRAIN_PROGRAM_TRAIN_LIST_H

#include "train/program/train_args.h"
#include "train/tasks/task.h"

/** train_list_main - trib-train list; returns the exit code. */
int train_list_main(const struct train_args *args);

/** train_task_named - the task; NULL after a sentence with the nearest name. */
const struct task_row *train_task_named(const char *name);

#endif
