/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linear models of two similar classes of Fashion-MNIST, shirts and pullovers: logistic
 * regression, or a support vector machine with hinge loss. The parameters are the
 * weights of the pixels, then the bias.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/tasks/linear.h"
#include "train/tasks/mnist.h"
#include "train/tasks/rows.h"
#include "train/tasks/shares.h"

enum { PULLOVER = 2, SHIRT = 6 };

struct linear_task {
    struct task task;
    struct mnist images, tests;
    uint32_t *chosen; /* [n_chosen] images of both classes */
    uint32_t *chosen_tests;
    size_t n_chosen, n_tests;
    struct shares shares;
    float *input; /* one image */
    int variant, rank, ranks;
};

static uint32_t *choose(const struct mnist *data, size_t *n_out)
{
    uint32_t *chosen = malloc((data->count + 1) * sizeof(*chosen));

    *n_out = 0;
    for (size_t i = 0; chosen && i < data->count; i++)
        if (data->labels[i] == PULLOVER || data->labels[i] == SHIRT)
            chosen[(*n_out)++] = (uint32_t)i;
    return chosen;
}

static void linear_destroy(struct task *task)
{
    struct linear_task *t = (struct linear_task *)task;

    mnist_free(&t->images);
    mnist_free(&t->tests);
    shares_destroy(&t->shares);
    free(t->chosen);
    free(t->chosen_tests);
    free(t->input);
    free(t);
}

static int load(struct linear_task *t, const struct task_desc *desc, char *error,
                size_t bytes)
{
    const char *folder = desc->data ? desc->data : MNIST_FOLDER;

    if (mnist_load(desc->kept, folder, "train", &t->images, error, bytes) != 0 ||
        mnist_load(desc->kept, folder, "t10k", &t->tests, error, bytes) != 0)
        return -1;
    t->chosen = choose(&t->images, &t->n_chosen);
    t->chosen_tests = choose(&t->tests, &t->n_tests);
    t->input = malloc(MNIST_PIXELS * sizeof(float));
    if (t->n_chosen / (size_t)desc->ranks < t->task.batch) {
        snprintf(error, bytes, "a batch of %zu does not fit %zu images per rank",
                 t->task.batch, t->n_chosen / (size_t)desc->ranks);
        return -1;
    }
    if (t->chosen && t->chosen_tests && t->input &&
        shares_create(&t->shares, t->n_chosen, desc->rank, desc->ranks, desc->seed) ==
            0)
        return 0;
    snprintf(error, bytes, "out of memory");
    return -1;
}

static int linear_create(const struct task_desc *desc, const struct task_row *row,
                         struct task **task_out, char *error, size_t bytes)
{
    struct linear_task *t = calloc(1, sizeof(*t));

    *task_out = NULL;
    if (!t) {
        snprintf(error, bytes, "out of memory");
        return -1;
    }
    t->variant = row->variant;
    t->rank = desc->rank;
    t->ranks = desc->ranks;
    t->task.ops = row->ops;
    t->task.n_params = MNIST_PIXELS + 1;
    t->task.sample_bytes = sizeof(struct mnist_sample);
    t->task.batch = desc->batch ? desc->batch : 32;
    if (load(t, desc, error, bytes) != 0) {
        linear_destroy(&t->task);
        return -1;
    }
    t->task.steps_per_epoch = t->shares.count / t->task.batch;
    t->task.parts[0] =
        (trib_part_t){sizeof(trib_part_t), "all", MNIST_PIXELS + 1, 2, NULL, NULL};
    t->task.n_parts = 1;
    *task_out = &t->task;
    return 0;
}

static void linear_seed(struct task *task, float *params, uint64_t seed)
{
    (void)seed;
    memset(params, 0, task->n_params * sizeof(float));
}

static double score(const float *input, const float *params)
{
    double sum = params[MNIST_PIXELS];

    for (size_t i = 0; i < MNIST_PIXELS; i++)
        sum += (double)(params[i] * input[i]);
    return sum;
}

static double sign_of(uint8_t label)
{
    return label == SHIRT ? 1 : -1;
}

/* Return the derivative of the loss with respect to the score; add the loss to
 * *loss. */
static double slope(int variant, double margin, double sign, double *loss)
{
    if (variant == TASK_LINEAR_HINGE) {
        *loss += margin < 1 ? 1 - margin : 0;
        return margin < 1 ? -sign : 0;
    }
    *loss += margin > 0 ? log1p(exp(-margin)) : log1p(exp(margin)) - margin;
    return -sign / (1 + exp(margin));
}

/* Add one input's term of the gradient of a mean over `count` inputs; return its
 * loss. */
static double add_gradient(const struct linear_task *t, const float *params,
                           uint8_t label, size_t count, float *gradient)
{
    const double sign = sign_of(label), z = score(t->input, params);
    double loss = 0;
    const float d = (float)(slope(t->variant, sign * z, sign, &loss) / (double)count);

    for (size_t i = 0; i < MNIST_PIXELS; i++)
        gradient[i] += d * t->input[i];
    gradient[MNIST_PIXELS] += d;
    return loss;
}

static void begin_gradient(const float *params, float *gradient)
{
    for (size_t i = 0; i < MNIST_PIXELS; i++)
        gradient[i] = LINEAR_DECAY * params[i];
    gradient[MNIST_PIXELS] = 0;
}

static double linear_gradient(struct task *task, const float *params, float *gradient,
                              net_ready_fn ready, void *arg)
{
    struct linear_task *t = (struct linear_task *)task;
    const uint32_t *picks = shares_take(&t->shares, task->batch);
    double loss = 0;
    uint8_t label;

    begin_gradient(params, gradient);
    for (size_t s = 0; s < task->batch; s++) {
        mnist_batch(&t->images, &t->chosen[picks[s]], 1, t->input, &label);
        loss += add_gradient(t, params, label, task->batch, gradient);
    }
    if (ready && ready(arg, 0, task->n_params) != 0)
        return -1;
    return loss / (double)task->batch;
}

static void linear_sample_of(struct task *task, uint64_t number, void *sample_out)
{
    struct linear_task *t = (struct linear_task *)task;

    mnist_sample(&t->images, t->chosen[shares_at(&t->shares, number)], sample_out);
}

static double linear_sample_gradient(struct task *task, const float *params,
                                     const void *samples, size_t count, float *gradient)
{
    struct linear_task *t = (struct linear_task *)task;
    const struct mnist_sample *sample = samples;
    double loss = 0;
    uint8_t label;

    begin_gradient(params, gradient);
    for (size_t s = 0; s < count; s++) {
        mnist_inputs(&sample[s], 1, t->input, &label);
        loss += add_gradient(t, params, label, count, gradient);
    }
    return loss / (double)count;
}

static void linear_evaluate(struct task *task, const float *params, double *sum_out,
                            double *count_out)
{
    struct linear_task *t = (struct linear_task *)task;
    const size_t first = t->n_tests * (size_t)t->rank / (size_t)t->ranks;
    const size_t end = t->n_tests * (size_t)(t->rank + 1) / (size_t)t->ranks;

    *sum_out = 0;
    *count_out = (double)(end - first);
    for (size_t i = first; i < end; i++) {
        uint8_t label;

        mnist_batch(&t->tests, &t->chosen_tests[i], 1, t->input, &label);
        *sum_out += score(t->input, params) * sign_of(label) > 0;
    }
}

/* --- all samples --- */

bool linear_is(const struct task_row *row)
{
    return row->ops == &task_linear;
}

const char *linear_loss(const struct task *task)
{
    const struct linear_task *t = (const struct linear_task *)task;

    return t->variant == TASK_LINEAR_HINGE ? "hinge" : "logistic";
}

size_t linear_count(const struct task *task)
{
    return ((const struct linear_task *)task)->n_chosen;
}

float linear_sample(const struct task *task, size_t number, float *features)
{
    const struct linear_task *t = (const struct linear_task *)task;
    uint8_t label;

    mnist_batch(&t->images, &t->chosen[number], 1, features, &label);
    return (float)sign_of(label);
}

void linear_whole_gradient(const struct task *task, const float *params,
                           double *gradient_out)
{
    const struct linear_task *t = (const struct linear_task *)task;
    double loss = 0;

    memset(gradient_out, 0, task->n_params * sizeof(*gradient_out));
    for (size_t s = 0; s < t->n_chosen; s++) {
        const double sign = (double)linear_sample(task, s, t->input);
        double z = (double)params[MNIST_PIXELS];

        for (size_t i = 0; i < MNIST_PIXELS; i++)
            z += (double)params[i] * (double)t->input[i];
        const double d = slope(t->variant, sign * z, sign, &loss) / (double)t->n_chosen;
        for (size_t i = 0; i < MNIST_PIXELS; i++)
            gradient_out[i] += d * (double)t->input[i];
        gradient_out[MNIST_PIXELS] += d;
    }
}

static void linear_keep(struct mnist_kept *kept, const char *data)
{
    mnist_keep(kept, data ? data : MNIST_FOLDER);
}

const struct task_ops task_linear = {
    linear_create,          linear_destroy,  linear_seed,
    linear_gradient,        linear_evaluate, linear_sample_of,
    linear_sample_gradient, linear_keep};
