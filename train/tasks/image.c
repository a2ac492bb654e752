/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Networks that classify the images of Fashion-MNIST (Xiao, Rasul & Vollgraf, 2017).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/tasks/mnist.h"
#include "train/tasks/rows.h"
#include "train/tasks/shares.h"

struct image_task {
    struct task task;
    struct net net;
    struct mnist images, tests;
    struct shares shares;
    float *inputs; /* [batch] samples */
    uint8_t *labels;
    char names[NET_LAYERS_MAX][2][32];
};

static void build(struct net *net, int variant)
{
    net_begin(net, 1, MNIST_ROWS, MNIST_COLS);
    if (variant == TASK_IMAGE_MLP) {
        net_dense(net, 512, 1);
        net_dense(net, 256, 1);
    } else if (variant == TASK_IMAGE_CNN) {
        net_conv(net, 16, 3, 1, 1);
        net_pool(net);
        net_conv(net, 32, 3, 1, 1);
        net_pool(net);
        net_dense(net, 128, 1);
    } else {
        const size_t width = variant == TASK_IMAGE_CNNWIDE ? 4 : 1;

        net_conv(net, 16 * width, 5, 2, 1);
        net_conv(net, 32 * width, 3, 1, 1);
        net_pool(net);
        net_conv(net, 64 * width, 3, 1, 1);
        net_conv(net, 64 * width, 3, 1, 1);
        net_mean(net);
    }
    net_dense(net, MNIST_CLASSES, 0);
}

/* Describe the weights of a layer as one part and its biases as another, of one
 * dimension. A part is named after the layer's kind and index. */
static void describe_parts(struct image_task *t)
{
    for (int i = 0; i < t->net.n_layers; i++) {
        const struct net_layer *l = &t->net.layers[i];

        if (!l->weights)
            continue;
        snprintf(t->names[i][0], sizeof(t->names[i][0]), "%s%d",
                 l->kind == NET_CONV ? "conv" : "dense", i);
        snprintf(t->names[i][1], sizeof(t->names[i][1]), "%.20s.bias", t->names[i][0]);
        task_add_part(&t->task, t->names[i][0], l->weights, 2);
        task_add_part(&t->task, t->names[i][1], l->biases, 1);
    }
}

static void image_destroy(struct task *task)
{
    struct image_task *t = (struct image_task *)task;

    net_destroy(&t->net);
    mnist_free(&t->images);
    mnist_free(&t->tests);
    shares_destroy(&t->shares);
    free(t->inputs);
    free(t->labels);
}

static trib_status_t image_create(struct task *task, const struct task_desc *desc,
                                  struct trib_error *err)
{
    struct image_task *t = (struct image_task *)task;

    trib_status_t st =
        mnist_load_both(desc->kept, desc->data, &t->images, &t->tests, err);
    if (st == TRIB_OK)
        st = task_fit_batch(task, desc, t->images.count, err);
    if (st != TRIB_OK)
        return st;
    build(&t->net, task->variant);
    t->inputs = malloc(task->batch * MNIST_PIXELS * sizeof(float));
    t->labels = malloc(task->batch);
    if (net_finish(&t->net, task->batch) != 0 || !t->inputs || !t->labels ||
        shares_create(&t->shares, t->images.count, desc->rank, desc->ranks,
                      desc->seed) != 0)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory");
    task->n_params = t->net.n_params;
    task->sample_bytes = sizeof(struct mnist_sample);
    task->steps_per_epoch = t->shares.count / task->batch;
    describe_parts(t);
    return TRIB_OK;
}

static void image_seed(struct task *task, float *params, uint64_t seed)
{
    net_seed(&((struct image_task *)task)->net, params, seed);
}

static double image_gradient(struct task *task, const float *params, float *gradient,
                             net_ready_fn ready, void *arg)
{
    struct image_task *t = (struct image_task *)task;

    mnist_batch(&t->images, shares_take(&t->shares, task->batch), task->batch,
                t->inputs, t->labels);
    return net_gradient(&t->net, params, t->inputs, t->labels, task->batch, gradient,
                        ready, arg);
}

static void image_sample(struct task *task, uint64_t number, void *sample_out)
{
    struct image_task *t = (struct image_task *)task;

    mnist_sample(&t->images, shares_at(&t->shares, number), sample_out);
}

static double image_sample_gradient(struct task *task, const float *params,
                                    const void *samples, size_t count, float *gradient)
{
    struct image_task *t = (struct image_task *)task;

    mnist_inputs(samples, count, t->inputs, t->labels);
    return net_gradient(&t->net, params, t->inputs, t->labels, count, gradient, NULL,
                        NULL);
}

static void image_evaluate(struct task *task, const float *params, double *sum_out,
                           double *count_out)
{
    struct image_task *t = (struct image_task *)task;
    const size_t all = t->tests.count;
    size_t first = all * (size_t)task->rank / (size_t)task->ranks;
    const size_t end = all * (size_t)(task->rank + 1) / (size_t)task->ranks;
    size_t correct = 0;

    *count_out = (double)(end - first);
    while (first < end) {
        uint32_t picks[64];
        size_t n = end - first < task->batch ? end - first : task->batch;

        n = n < 64 ? n : 64;
        for (size_t i = 0; i < n; i++)
            picks[i] = (uint32_t)(first + i);
        mnist_batch(&t->tests, picks, n, t->inputs, t->labels);
        correct += net_correct(&t->net, params, t->inputs, t->labels, n);
        first += n;
    }
    *sum_out = (double)correct;
}

const struct task_ops task_image = {sizeof(struct image_task),
                                    image_create,
                                    image_destroy,
                                    image_seed,
                                    image_gradient,
                                    image_evaluate,
                                    image_sample,
                                    image_sample_gradient,
                                    mnist_keep_data};
