/* SPDX-License-Identifier: BSD-3-Clause */
#include "examples/mlp.h"

#include <assert.h>
#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "examples/draw.h"

static const float *layer_bias(const struct mlp *mlp, const struct mlp_layer *layer)
{
    return mlp->params + layer->first + layer->out * layer->in;
}

static const float *layer_inputs(const struct mlp *mlp, int index,
                                 const struct mlp_batch *batch)
{
    return index == 0 ? batch->inputs : mlp->layers[index - 1].outputs;
}

static float *alloc_floats(size_t count)
{
    return calloc(count, sizeof(float));
}

int mlp_create(const size_t *widths, int n_widths, size_t batch_max,
               struct mlp **mlp_out)
{
    struct mlp *mlp = calloc(1, sizeof(*mlp));
    int complete = 1;

    assert(n_widths >= 2 && n_widths - 1 <= MLP_LAYERS_MAX);
    if (mlp == NULL)
        return -1;
    mlp->n_layers = n_widths - 1;
    mlp->batch_max = batch_max;
    for (int i = 0; i < mlp->n_layers; i++) {
        struct mlp_layer *layer = &mlp->layers[i];

        layer->in = widths[i];
        layer->out = widths[i + 1];
        layer->first = mlp->n_params;
        layer->outputs = alloc_floats(batch_max * layer->out);
        layer->deltas = alloc_floats(batch_max * layer->out);
        complete &= layer->outputs != NULL && layer->deltas != NULL;
        mlp->n_params += layer->out * (layer->in + 1);
    }
    mlp->params = alloc_floats(mlp->n_params);
    mlp->velocity = alloc_floats(mlp->n_params);
    if (!complete || mlp->params == NULL || mlp->velocity == NULL) {
        mlp_destroy(mlp);
        return -1;
    }
    *mlp_out = mlp;
    return 0;
}

void mlp_destroy(struct mlp *mlp)
{
    if (mlp == NULL)
        return;
    for (int i = 0; i < mlp->n_layers; i++) {
        free(mlp->layers[i].outputs);
        free(mlp->layers[i].deltas);
    }
    free(mlp->params);
    free(mlp->velocity);
    free(mlp);
}

void mlp_seed(struct mlp *mlp, uint64_t seed)
{
    uint64_t state = seed;

    memset(mlp->params, 0, mlp->n_params * sizeof(float));
    memset(mlp->velocity, 0, mlp->n_params * sizeof(float));
    for (int i = 0; i < mlp->n_layers; i++) {
        const struct mlp_layer *layer = &mlp->layers[i];
        float *weights = mlp->params + layer->first;
        float bound = sqrtf(6.0f / (float)layer->in);

        for (size_t w = 0; w < layer->out * layer->in; w++)
            weights[w] = bound * (2.0f * draw_unit(&state) - 1.0f);
    }
}

static void relu(float *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

/* outputs[n][out] = inputs[n][in] * weights[out][in]^T + bias, ReLU but in the last. */
static void forward(struct mlp *mlp, const struct mlp_batch *batch)
{
    assert(batch->count <= mlp->batch_max);
    for (int i = 0; i < mlp->n_layers; i++) {
        struct mlp_layer *layer = &mlp->layers[i];
        const float *bias = layer_bias(mlp, layer);
        int n = (int)batch->count;
        int in = (int)layer->in;
        int out = (int)layer->out;

        for (size_t s = 0; s < batch->count; s++)
            memcpy(layer->outputs + s * layer->out, bias, layer->out * sizeof(float));
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, out, in, 1.0f,
                    layer_inputs(mlp, i, batch), in, mlp->params + layer->first, in,
                    1.0f, layer->outputs, out);
        if (i + 1 < mlp->n_layers)
            relu(layer->outputs, batch->count * layer->out);
    }
}

/* The last layer's deltas, (softmax - one-hot) / n, and the mean loss. */
static double softmax_loss(struct mlp *mlp, const struct mlp_batch *batch)
{
    struct mlp_layer *last = &mlp->layers[mlp->n_layers - 1];
    double loss = 0.0;

    for (size_t s = 0; s < batch->count; s++) {
        const float *logits = last->outputs + s * last->out;
        float *delta = last->deltas + s * last->out;
        float top = logits[0];
        float sum = 0.0f;

        for (size_t k = 1; k < last->out; k++)
            top = logits[k] > top ? logits[k] : top;
        for (size_t k = 0; k < last->out; k++) {
            delta[k] = expf(logits[k] - top);
            sum += delta[k];
        }
        for (size_t k = 0; k < last->out; k++)
            delta[k] /= sum * (float)batch->count;
        delta[batch->labels[s]] -= 1.0f / (float)batch->count;
        loss += (double)(logf(sum) + top - logits[batch->labels[s]]);
    }
    return loss / (double)batch->count;
}

/* Operands of one pass of back-propagation. */
struct backward {
    const struct mlp *mlp;
    const struct mlp_batch *batch;
    float *gradient;
    mlp_ready_fn ready;
    void *arg;
};

static int bias_gradient(const struct backward *pass, const struct mlp_layer *layer)
{
    size_t first = layer->first + layer->out * layer->in;
    float *sums = pass->gradient + first;

    memset(sums, 0, layer->out * sizeof(float));
    for (size_t s = 0; s < pass->batch->count; s++)
        cblas_saxpy((int)layer->out, 1.0f, layer->deltas + s * layer->out, 1, sums, 1);
    return pass->ready(pass->arg, first, layer->out);
}

/*
 * gradient[out][in] = deltas[n][out]^T * inputs[n][in], a few rows at a time from the
 * end on: the weights of the first layer are most of the vector and come last, and so
 * the wire carries some of its rows while the others are being computed.
 */
static int weight_gradient(const struct backward *pass, int index)
{
    const struct mlp_layer *layer = &pass->mlp->layers[index];
    const float *inputs = layer_inputs(pass->mlp, index, pass->batch);
    size_t rows_max = layer->in < MLP_PIECE_ELEMS ? MLP_PIECE_ELEMS / layer->in : 1;
    size_t row = layer->out;
    int in = (int)layer->in;

    while (row > 0) {
        size_t rows = row < rows_max ? row : rows_max;

        row -= rows;
        size_t first = layer->first + row * layer->in;

        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)rows, in,
                    (int)pass->batch->count, 1.0f, layer->deltas + row, (int)layer->out,
                    inputs, in, 0.0f, pass->gradient + first, in);
        if (pass->ready(pass->arg, first, rows * layer->in) != 0)
            return -1;
    }
    return 0;
}

/* below->deltas = deltas[n][out] * weights[out][in] where the ReLU below is on. */
static void layer_backward(const struct mlp *mlp, int index, size_t count)
{
    const struct mlp_layer *layer = &mlp->layers[index];
    const struct mlp_layer *below = &mlp->layers[index - 1];
    int in = (int)layer->in;
    int out = (int)layer->out;

    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)count, in, out, 1.0f,
                layer->deltas, out, mlp->params + layer->first, in, 0.0f, below->deltas,
                in);
    for (size_t i = 0; i < count * layer->in; i++)
        below->deltas[i] = below->outputs[i] > 0.0f ? below->deltas[i] : 0.0f;
}

double mlp_gradient(struct mlp *mlp, const struct mlp_batch *batch, float *gradient,
                    mlp_ready_fn ready, void *arg)
{
    const struct backward pass = {mlp, batch, gradient, ready, arg};

    forward(mlp, batch);
    double loss = softmax_loss(mlp, batch);

    for (int i = mlp->n_layers - 1; i >= 0; i--) {
        if (bias_gradient(&pass, &mlp->layers[i]) != 0 ||
            weight_gradient(&pass, i) != 0)
            return -1.0;
        if (i > 0)
            layer_backward(mlp, i, batch->count);
    }
    return loss;
}

void mlp_update(struct mlp *mlp, const float *gradient, float rate, float momentum)
{
    int n = (int)mlp->n_params;

    cblas_sscal(n, momentum, mlp->velocity, 1);
    cblas_saxpy(n, 1.0f, gradient, 1, mlp->velocity, 1);
    cblas_saxpy(n, -rate, mlp->velocity, 1, mlp->params, 1);
}

size_t mlp_correct(struct mlp *mlp, const struct mlp_batch *batch)
{
    const struct mlp_layer *last = &mlp->layers[mlp->n_layers - 1];
    size_t correct = 0;

    forward(mlp, batch);
    for (size_t s = 0; s < batch->count; s++) {
        const float *logits = last->outputs + s * last->out;
        size_t best = 0;

        for (size_t k = 1; k < last->out; k++)
            best = logits[k] > logits[best] ? k : best;
        correct += best == batch->labels[s];
    }
    return correct;
}
