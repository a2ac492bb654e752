/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks: a model and its data, as one vector of parameters and its gradients. A new one
 * is a row of tasks.def.
 */
#ifndef TRAIN_TASKS_TASK_H
#define TRAIN_TASKS_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/train.h>

#include "train/tasks/network.h"

struct mnist_kept;
struct task;
struct task_row;

enum { TASK_PARTS_MAX = 32, TASK_ROWS_MAX = 32 };

/* Whose share of the data a rank has. */
struct task_desc {
    const char *data; /* folder, or file; NULL: where the packages put it */
    const struct mnist_kept *kept; /* what keep has read; NULL: nothing */
    int rank, ranks;
    size_t batch; /* samples of one rank and step; 0: the task's */
    uint64_t seed;
};

struct task_ops {
    /** create - load the data and make the model; *task_out is freed by destroy.
     * Errors: -1 with a sentence in error. */
    int (*create)(const struct task_desc *desc, const struct task_row *row,
                  struct task **task_out, char *error, size_t bytes);
    void (*destroy)(struct task *task);

    /** seed - draw the first parameters. */
    void (*seed)(struct task *task, float *params, uint64_t seed);

    /** gradient - of the mean loss of this rank's next batch; -1: ready stopped it. */
    double (*gradient)(struct task *task, const float *params, float *gradient,
                       net_ready_fn ready, void *arg);

    /** evaluate - on this rank's part of the test data: a sum and a count, whose
     * quotient over all ranks is the result. */
    void (*evaluate)(struct task *task, const float *params, double *sum_out,
                     double *count_out);

    /** sample - a sample of the training data by its number, whatever rank has it: a
     * pass over the data is so many numbers, in another order each time. Of tasks whose
     * data is for one rank of one. NULL: there are no such samples. */
    void (*sample)(struct task *task, uint64_t number, void *sample_out);

    /** sample_gradient - of the mean loss of these samples, at most a batch; returns
     * that loss. */
    double (*sample_gradient)(struct task *task, const float *params,
                              const void *samples, size_t count, float *gradient);

    /** keep - read the data once, for the tasks of this process and of those that it
     * forks from here on. NULL: each task reads it. */
    void (*keep)(struct mnist_kept *kept, const char *data);
};

/* What all tasks have. */
struct task {
    const struct task_ops *ops;
    size_t n_params;
    size_t batch;
    size_t sample_bytes; /* of ops->sample */
    size_t steps_per_epoch;
    trib_part_t parts[TASK_PARTS_MAX]; /* layers: their weights and biases */
    size_t n_parts;
};

struct task_row {
    const char *name;
    const char *summary;
    const char *result; /* "accuracy", "perplexity" */
    bool lower_is_better; /* the result is exp of what evaluate gives; else percent */
    const char *optimizer, *rate; /* tuned for dense sums */
    const struct task_ops *ops;
    int variant;
};

/** task_at - the row of number i; NULL: there are no more. */
const struct task_row *task_at(int i);
const struct task_row *task_named(const char *name);

#endif
