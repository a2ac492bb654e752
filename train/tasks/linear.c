/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linear models of two similar classes of Fashion-MNIST, shirts and pullovers: logistic
 * regression, or a support vector machine with hinge loss. The parameters are the
 * weights of the pixels, then the bias.
 */
#include <math.h>
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
}

static trib_status_t load(struct linear_task *t, const struct task_desc *desc,
                          struct trib_error *err)
{
    trib_status_t st =
        mnist_load_both(desc->kept, desc->data, &t->images, &t->tests, err);

    if (st != TRIB_OK)
        return st;
    t->chosen = choose(&t->images, &t->n_chosen);
    t->chosen_tests = choose(&t->tests, &t->n_tests);
    t->input = malloc(MNIST_PIXELS * sizeof(float));
    st = task_fit_batch(&t->task, desc, t->n_chosen, err);
    if (st != TRIB_OK)
        return st;
    if (t->chosen && t->chosen_tests && t->input &&
        shares_create(&t->shares, t->n_chosen, desc->rank, desc->ranks, desc->seed) ==
            0)
        return TRIB_OK;
    return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory");
}

static trib_status_t linear_create(struct task *task, const struct task_desc *desc,
                                   struct trib_error *err)
{
    struct linear_task *t = (struct linear_task *)task;
    const trib_status_t st = load(t, desc, err);

    if (st != TRIB_OK)
        return st;
    task->n_params = MNIST_PIXELS + 1;
    task->sample_bytes = sizeof(struct mnist_sample);
    task->steps_per_epoch = t->shares.count / task->batch;
    task_add_part(task, "all", task->n_params, 2);
    return TRIB_OK;
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
    const float d =
        (float)(slope(t->task.variant, sign * z, sign, &loss) / (double)count);

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
    const size_t first = t->n_tests * (size_t)task->rank / (size_t)task->ranks;
    const size_t end = t->n_tests * (size_t)(task->rank + 1) / (size_t)task->ranks;

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
    return task->variant == TASK_LINEAR_HINGE ? "hinge" : "logistic";
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
        const double d =
            slope(task->variant, sign * z, sign, &loss) / (double)t->n_chosen;
        for (size_t i = 0; i < MNIST_PIXELS; i++)
            gradient_out[i] += d * (double)t->input[i];
        gradient_out[MNIST_PIXELS] += d;
    }
}

const struct task_ops task_linear = {sizeof(struct linear_task),
                                     linear_create,
                                     linear_destroy,
                                     linear_seed,
                                     linear_gradient,
                                     linear_evaluate,
                                     linear_sample_of,
                                     linear_sample_gradient,
                                     mnist_keep_data};
