/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All samples of the linear tasks (logreg, svm), for full-batch gradient descent.
 */
#ifndef TRAIN_TASKS_LINEAR_H
#define TRAIN_TASKS_LINEAR_H

#include "train/tasks/task.h"

#define LINEAR_DECAY 1e-4f /* weight decay, not of the bias */

/** linear_is - return true if a row's task is linear. The functions below accept only
 * such tasks. */
bool linear_is(const struct task_row *row);

/** linear_loss - return "logistic" or "hinge". */
const char *linear_loss(const struct task *task);

/** linear_count - return the number of training samples of all ranks. */
size_t linear_count(const struct task *task);

/** linear_sample - write the [n_params - 1] features of a sample; return its label, 1
 * or -1. */
float linear_sample(const struct task *task, size_t number, float *features);

/** linear_whole_gradient - compute the gradient [n_params] of the mean loss of all
 * samples, in double and without weight decay. */
void linear_whole_gradient(const struct task *task, const float *params,
                           double *gradient_out);

#endif
