/* SPDX-License-Identifier: BSD-3-Clause */
/* Names used in tasks.def: variants and ops. */
#ifndef TRAIN_TASKS_ROWS_H
#define TRAIN_TASKS_ROWS_H

#include "train/tasks/task.h"

enum { TASK_IMAGE_MLP, TASK_IMAGE_CNN, TASK_IMAGE_CNNALL, TASK_IMAGE_CNNWIDE };
enum { TASK_LINEAR_LOGISTIC, TASK_LINEAR_HINGE };

extern const struct task_ops task_image, task_text, task_linear;

#endif
