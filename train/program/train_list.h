/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of tasks, strategies, codecs and rows of the comparison.
 */
#ifndef TRAIN_PROGRAM_TRAIN_LIST_H
#define TRAIN_PROGRAM_TRAIN_LIST_H

#include "train/program/train_args.h"
#include "train/tasks/task.h"

/** train_list_main - run trib-train list; return the exit code. */
int train_list_main(const struct train_args *args);

/** train_task_named - return the task; NULL after an error message that suggests the
 * nearest name. */
const struct task_row *train_task_named(const char *name);

#endif
