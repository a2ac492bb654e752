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
    int rank, ranks;
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
    struct task *task = &t->task;

    for (int i = 0; i < t->net.n_layers; i++) {
        const struct net_layer *l = &t->net.layers[i];

        if (!l->weights)
            continue;
        snprintf(t->names[i][0], sizeof(t->names[i][0]), "%s%d",
                 l->kind == NET_CONV ? "conv" : "dense", i);
        snprintf(t->names[i][1], sizeof(t->names[i][1]), "%.20s.bias", t->names[i][0]);
        task->parts[task->n_parts++] = (trib_part_t){
            sizeof(trib_part_t), t->names[i][0], l->weights, 2, NULL, NULL};
        task->parts[task->n_parts++] = (trib_part_t){
            sizeof(trib_part_t), t->names[i][1], l->biases, 1, NULL, NULL};
    }
}

static int load(struct image_task *t, const struct task_desc *desc, char *error,
                size_t bytes)
{
    const char *folder = desc->data ? desc->data : MNIST_FOLDER;

    if (mnist_load(desc->kept, folder, "train", &t->images, error, bytes) != 0 ||
        mnist_load(desc->kept, folder, "t10k", &t->tests, error, bytes) != 0)
        return -1;
    t->task.batch = desc->batch ? desc->batch : 32;
    if (t->images.count / (size_t)desc->ranks < t->task.batch) {
        snprintf(error, bytes, "a batch of %zu does not fit %zu images per rank",
                 t->task.batch, t->images.count / (size_t)desc->ranks);
        return -1;
    }
    return 0;
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
    free(t);
}

static int image_create(const struct task_desc *desc, const struct task_row *row,
                        struct task **task_out, char *error, size_t bytes)
{
    struct image_task *t = calloc(1, sizeof(*t));

    *task_out = NULL;
    if (!t || load(t, desc, error, bytes) != 0) {
        if (!t)
            snprintf(error, bytes, "out of memory");
        else
            image_destroy(&t->task);
        return -1;
    }
    t->rank = desc->rank;
    t->ranks = desc->ranks;
    build(&t->net, row->variant);
    t->inputs = malloc(t->task.batch * MNIST_PIXELS * sizeof(float));
    t->labels = malloc(t->task.batch);
    if (net_finish(&t->net, t->task.batch) != 0 || !t->inputs || !t->labels ||
        shares_create(&t->shares, t->images.count, desc->rank, desc->ranks,
                      desc->seed) != 0) {
        snprintf(error, bytes, "out of memory");
        image_destroy(&t->task);
        return -1;
    }
    t->task.ops = row->ops;
    t->task.n_params = t->net.n_params;
    t->task.sample_bytes = sizeof(struct mnist_sample);
    t->task.steps_per_epoch = t->shares.count / t->task.batch;
    describe_parts(t);
    *task_out = &t->task;
    return 0;
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
    size_t first = all * (size_t)t->rank / (size_t)t->ranks;
    const size_t end = all * (size_t)(t->rank + 1) / (size_t)t->ranks;
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

static void image_keep(struct mnist_kept *kept, const char *data)
{
    mnist_keep(kept, data ? data : MNIST_FOLDER);
}

const struct task_ops task_image = {image_create,          image_destroy,  image_seed,
                                    image_gradient,        image_evaluate, image_sample,
                                    image_sample_gradient, image_keep};
