/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks: a model and its data, as one vector of parameters and its gradients. To add
 * one, write a row in tasks.def.
 */
#ifndef TRAIN_TASKS_TASK_H
#define TRAIN_TASKS_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/train.h>

#include "base/error.h"
#include "train/tasks/network.h"

struct mnist_kept;
struct task;
struct task_row;

enum { TASK_PARTS_MAX = 32, TASK_ROWS_MAX = 32 };

/* Selects a rank's part of the data. */
struct task_desc {
    const char *data; /* folder or file; NULL: the packages' location */
    const struct mnist_kept *kept; /* data read by keep; NULL: none */
    int rank, ranks;
    size_t batch; /* samples per rank and step; 0: the task's default */
    uint64_t seed;
};

struct task_ops {
    size_t bytes; /* of the task's struct, which begins with struct task */

    /** create - load the data and create the model. destroy frees both, also after an
     * error. */
    trib_status_t (*create)(struct task *task, const struct task_desc *desc,
                            struct trib_error *err);
    void (*destroy)(struct task *task);

    /** seed - draw the initial parameters. */
    void (*seed)(struct task *task, float *params, uint64_t seed);

    /** gradient - compute the gradient of the mean loss of this rank's next batch and
     * return the loss; -1: ready stopped. */
    double (*gradient)(struct task *task, const float *params, float *gradient,
                       net_ready_fn ready, void *arg);

    /** evaluate - evaluate this rank's part of the test data. The result is the
     * quotient of sum and count over all ranks. */
    void (*evaluate)(struct task *task, const float *params, double *sum_out,
                     double *count_out);

    /** sample - write the training sample with a number, on any rank; each pass over
     * the data has another order. Only for tasks created with ranks == 1. NULL:
     * unsupported. */
    void (*sample)(struct task *task, uint64_t number, void *sample_out);

    /** sample_gradient - compute the gradient of the mean loss of these samples, at
     * most a batch; return the loss. */
    double (*sample_gradient)(struct task *task, const float *params,
                              const void *samples, size_t count, float *gradient);

    /** keep - read the data once, for the tasks of this process and of processes that
     * it forks later. NULL: each task reads it. */
    void (*keep)(struct mnist_kept *kept, const char *data);
};

/* Common part of all tasks. */
struct task {
    const struct task_ops *ops;
    int variant;
    int rank, ranks;
    size_t n_params;
    size_t batch;
    size_t sample_bytes; /* of ops->sample */
    size_t steps_per_epoch;
    trib_part_t parts[TASK_PARTS_MAX]; /* weights and biases of the layers */
    size_t n_parts;
};

struct task_row {
    const char *name;
    const char *summary;
    const char *result; /* "accuracy" or "perplexity" */
    /* the result is exp of evaluate's quotient; else a percentage */
    bool lower_is_better;
    const char *optimizer, *rate; /* tuned for dense sums */
    const struct task_ops *ops;
    int variant;
};

/** task_at - return row i; NULL: i is out of range. */
const struct task_row *task_at(int i);
const struct task_row *task_named(const char *name);

/**
 * task_create - create a task for a rank.
 *
 * owner    the caller frees *task_out with task_destroy
 * errors   an error message in err; *task_out is then NULL
 */
trib_status_t task_create(const struct task_row *row, const struct task_desc *desc,
                          struct task **task_out, struct trib_error *err);

/** task_fit_batch - for create: set task->batch; fail if a rank's share of n samples is
 * smaller. */
trib_status_t task_fit_batch(struct task *task, const struct task_desc *desc, size_t n,
                             struct trib_error *err);

/** task_add_part - for create: append a part; the name is borrowed. */
void task_add_part(struct task *task, const char *name, size_t count, int dims);

/** task_destroy - free a task. NULL is allowed. */
void task_destroy(struct task *task);

#endif
