/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A multi-layer perceptron: ReLU between layers, softmax cross-entropy at the end.
 *
 * Parameters, and so gradients, are ONE vector: for each layer, first to last, its
 * weights [out][in], then its biases [out]. Back-propagation fills the gradient from
 * the last element to the first.
 */
#ifndef TRIB_EXAMPLES_MLP_H
#define TRIB_EXAMPLES_MLP_H

#include <stddef.h>
#include <stdint.h>

enum {
    MLP_LAYERS_MAX = 8,
    MLP_PIECE_ELEMS = 1 << 16, /* at most so many elements are reported ready at once */
};

struct mlp_layer {
    size_t in;
    size_t out;
    size_t first; /* of its weights in the parameter vector */
    float *outputs; /* batch_max * out, after the ReLU */
    float *deltas; /* batch_max * out, the loss by the sums before the ReLU */
};

struct mlp {
    int n_layers;
    struct mlp_layer layers[MLP_LAYERS_MAX];
    size_t n_params;
    size_t batch_max;
    float *params;
    float *velocity; /* of the momentum */
};

/* A batch of samples: inputs[count][first layer's in], labels below the last out. */
struct mlp_batch {
    size_t count;
    const float *inputs;
    const uint8_t *labels;
};

/* Elements [first, first + count) of the gradient are final. Not 0: stop. */
typedef int (*mlp_ready_fn)(void *arg, size_t first, size_t count);

/**
 * mlp_create - a network of n_widths - 1 layers.
 *
 * widths   inputs, then neurons of each layer
 * owner    the caller frees *mlp_out with mlp_destroy
 * errors   -1: no memory
 */
int mlp_create(const size_t *widths, int n_widths, size_t batch_max,
               struct mlp **mlp_out);

/** mlp_destroy - NULL is allowed. */
void mlp_destroy(struct mlp *mlp);

/** mlp_seed - draw the first weights (He, ICCV 2015: uniform); biases are zero. */
void mlp_seed(struct mlp *mlp, uint64_t seed);

/**
 * mlp_gradient - the gradient of the mean loss of a batch.
 *
 * gradient receives n_params elements
 * ready    called for each piece as soon as it is final, from the end on
 * returns  the mean loss in nats, or -1 where ready stopped it
 */
double mlp_gradient(struct mlp *mlp, const struct mlp_batch *batch, float *gradient,
                    mlp_ready_fn ready, void *arg);

/** mlp_update - one step of gradient descent with momentum. */
void mlp_update(struct mlp *mlp, const float *gradient, float rate, float momentum);

/** mlp_correct - how many samples of a batch the network classifies as labelled. */
size_t mlp_correct(struct mlp *mlp, const struct mlp_batch *batch);

#endif
