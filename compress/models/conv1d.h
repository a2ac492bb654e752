/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layers of one-dimensional convolutions, forward and backward, as products of
 * matrices.
 *
 * Signals are channels x length floats, row-major. With taps T and stride S, no
 * padding:
 *     convolution   y[o][i] = f(bias[o] + sum over c, t of w[o][c][t] x[c][S i + t]),
 *                   of length floor((length - T) / S) + 1
 *     transposed    y[o][S i + t] = f(bias[o] + sum over c, i, t of w[c][o][t]
 *                   x[c][i]), of length S (length - 1) + T
 *     f(v) = v above 0, else slope * v              (LeakyReLU; slope 1: linear)
 * Weights are w, row-major, and behind it bias.
 *
 * All of it has the same bits in every instruction set. NaN and Inf go where the sums
 * carry them. No state; functions do not allocate.
 */
#ifndef COMPRESS_MODELS_CONV1D_H
#define COMPRESS_MODELS_CONV1D_H

#include "compress/kernels/kernels.h"

struct trib_layer {
    bool transposed;
    size_t in, out; /* channels */
    size_t taps;
    size_t stride;
    float slope; /* above 0 */
};

/** trib_layer_length - of the output for an input of `length`; 0: it is too short. */
size_t trib_layer_length(const struct trib_layer *l, size_t length);

/** trib_layer_weights - how many, with bias. */
size_t trib_layer_weights(const struct trib_layer *l);

/** trib_layer_columns - floats of trib_layer_run.columns for an input of `length`. */
size_t trib_layer_columns(const struct trib_layer *l, size_t length);

/* One layer on one signal. */
struct trib_layer_run {
    const struct trib_layer *layer;
    const struct trib_kernels *kernels;
    const float *weights;
    const float *x;
    size_t length; /* of x */
    float *y;
    float *columns;
    void *scratch; /* TRIB_GEMM_SCRATCH */
};

/** trib_layer_forward - y of x. */
void trib_layer_forward(const struct trib_layer_run *r);

/**
 * trib_layer_backward - from the derivatives of a loss in y those in x and the weights.
 *
 * r        as at trib_layer_forward, y being what that gave
 * dy       changed: becomes the derivative before f
 * dx       NULL: not wanted
 * dweights what is found is added
 */
void trib_layer_backward(const struct trib_layer_run *r, float *dy, float *dx,
                         float *dweights);

/**
 * trib_resize_forward - `to` samples of a signal of `from`, linear between the two
 * nearest; sample i lies at (i + 1/2) from / to - 1/2, not outside of the first and the
 * last. trib_resize_backward - the derivatives in x, overwritten, from those in y.
 */
void trib_resize_forward(const float *x, size_t from, float *y, size_t to);
void trib_resize_backward(float *dx, size_t from, const float *dy, size_t to);

#endif
