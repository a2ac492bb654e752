/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layers of one-dimensional convolutions, forward and backward, as matrix products.
 *
 * Signals are channels x length floats, row-major. With taps T and stride S, no
 * padding:
 *     convolution   y[o][i] = f(bias[o] + sum over c, t of w[o][c][t] x[c][S i + t]),
 *                   of length floor((length - T) / S) + 1
 *     transposed    y[o][S i + t] = f(bias[o] + sum over c, i, t of w[c][o][t]
 *                   x[c][i]), of length S (length - 1) + T
 *     f(v) = v above 0, else slope * v              (LeakyReLU; slope 1: linear)
 * Weights are w, row-major, followed by bias.
 *
 * All instruction sets produce the same bits. NaN and Inf propagate through the sums.
 * No state; functions do not allocate.
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

/** trib_layer_length - return the output length for an input of `length`; 0: too
 * short. */
size_t trib_layer_length(const struct trib_layer *l, size_t length);

/** trib_layer_weights - return the number of weights, bias included. */
size_t trib_layer_weights(const struct trib_layer *l);

/** trib_layer_columns - return the floats of trib_layer_run.columns for an input of
 * `length`. */
size_t trib_layer_columns(const struct trib_layer *l, size_t length);

/* One layer applied to one signal. */
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

/** trib_layer_forward - compute y from x. */
void trib_layer_forward(const struct trib_layer_run *r);

/**
 * trib_layer_backward - compute derivatives in x and in the weights from those in y.
 *
 * r        as in trib_layer_forward, with the resulting y
 * dy       overwritten by the derivative before f
 * dx       NULL: not wanted
 * dweights the result is added
 */
void trib_layer_backward(const struct trib_layer_run *r, float *dy, float *dx,
                         float *dweights);

/**
 * trib_resize_forward - resample a signal from `from` to `to` samples, linearly.
 *
 * Sample i lies at (i + 1/2) from / to - 1/2, clamped to the first and the last.
 *
 * trib_resize_backward - overwrite dx with the derivatives in x, from those in y.
 */
void trib_resize_forward(const float *x, size_t from, float *y, size_t to);
void trib_resize_backward(float *dx, size_t from, const float *dy, size_t to);

#endif
