/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Feed-forward networks as a list of layers, on OpenBLAS: dense, convolution (by
 * im2col) and pooling layers, with a final softmax and cross-entropy loss.
 *
 * Parameters are one vector, owned by the caller: for each layer its weights [out][in],
 * then its biases [out]. Gradients have the same layout. Back-propagation fills the
 * gradient from the last layer to the first.
 */
#ifndef TRAIN_TASKS_NETWORK_H
#define TRAIN_TASKS_NETWORK_H

#include <stddef.h>
#include <stdint.h>

enum { NET_LAYERS_MAX = 12 };

enum net_kind {
    NET_DENSE,
    NET_CONV, /* side x side filters; padding keeps the size at stride 1 */
    NET_POOL, /* maximum of 2 x 2 */
    NET_MEAN, /* mean of each channel over the image */
};

struct net_layer {
    enum net_kind kind;
    int relu;
    size_t channels, height, width; /* of the input */
    size_t out_channels, out_height, out_width;
    size_t side, stride; /* of a filter */
    size_t first; /* index of its weights in the parameter vector */
    size_t weights, biases; /* numbers of each */
    /* [batch_max][out_channels][out_height][out_width], after the ReLU */
    float *outputs;
    float *deltas; /* gradient of the loss with respect to the sums before the ReLU */
    uint32_t *from; /* of a pool: the input that each output was copied from */
};

struct net {
    int n_layers;
    struct net_layer layers[NET_LAYERS_MAX];
    size_t n_params, batch_max;
    float *columns; /* im2col buffer of one image */
    const float *inputs; /* of the current batch */
};

/* Called when elements [first, first + count) of the gradient are final. Non-zero:
 * stop. */
typedef int (*net_ready_fn)(void *arg, size_t first, size_t count);

/** net_begin - start a network for images of this size. */
void net_begin(struct net *net, size_t channels, size_t height, size_t width);

/** net_dense, net_conv, net_pool, net_mean - append a layer. */
void net_dense(struct net *net, size_t outputs, int relu);
void net_conv(struct net *net, size_t channels, size_t side, size_t stride, int relu);
void net_pool(struct net *net);
void net_mean(struct net *net);

/**
 * net_finish - allocate memory for batches of up to batch_max samples.
 *
 * owner    the caller: net_destroy, also after an error
 * errors   -1: no memory
 */
int net_finish(struct net *net, size_t batch_max);
void net_destroy(struct net *net);

/** net_seed - draw the initial weights (He, ICCV 2015: uniform); biases are 0. */
void net_seed(const struct net *net, float *params, uint64_t seed);

/**
 * net_gradient - compute the gradient of the mean loss of a batch.
 *
 * inputs   [count] samples of the first layer's size; labels are below the number of
 *          outputs
 * gradient receives n_params elements
 * ready    called for each layer as soon as its part is final, last layer first; or
 *          NULL
 * returns  the mean loss in nats, or -1 if ready stopped
 */
double net_gradient(struct net *net, const float *params, const float *inputs,
                    const uint8_t *labels, size_t count, float *gradient,
                    net_ready_fn ready, void *arg);

/** net_correct - return the number of samples in a batch that are classified as
 * labelled. */
size_t net_correct(struct net *net, const float *params, const float *inputs,
                   const uint8_t *labels, size_t count);

#endif
