/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linear tasks (logreg, svm) as all their samples, for gradient descent on the whole.
 */
#ifndef TRAIN_TASKS_LINEAR_H
#define TRAIN_TASKS_LINEAR_H

#include "train/tasks/task.h"

#define LINEAR_DECAY 1e-4f /* of the weights, without the bias */

/** linear_is - true if the tasks of a row are linear: all else here is for those. */
bool linear_is(const struct task_row *row);

/** linear_loss - "logistic" or "hinge". */
const char *linear_loss(const struct task *task);

/** linear_count - samples for training, of all ranks. */
size_t linear_count(const struct task *task);

/** linear_sample - a sample's [n_params - 1] features; returns its label, 1 or -1. */
float linear_sample(const struct task *task, size_t number, float *features);

/** linear_whole_gradient - of the mean loss of all samples, in double and without the
 * decay of weights: [n_params]. */
void linear_whole_gradient(const struct task *task, const float *params,
                           double *gradient_out);

#endif
