/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A character model: one LSTM layer and a softmax over the next character (Hochreiter &
 * Schmidhuber, Neural Computation 1997), on OpenBLAS. Back-propagation is truncated to
 * a window of characters; the state is carried from window to window.
 *
 * Parameters are one vector: input weights [symbols][4 hidden] and recurrent weights [4
 * hidden][hidden] of the gates input, forget, cell, output, their biases [4 hidden],
 * output weights [symbols][hidden], output biases [symbols].
 */
#ifndef TRAIN_TASKS_LSTM_H
#define TRAIN_TASKS_LSTM_H

#include <stddef.h>
#include <stdint.h>

struct lstm {
    size_t symbols, hidden, batch, window;
    size_t n_params;
    size_t wx, wh, b, wo, bo; /* first element of each */
    float *gates; /* [window][batch][4 hidden] after the activation functions */
    float *cells; /* [window + 1][batch][hidden]; row 0 is the initial state */
    float *states; /* [window + 1][batch][hidden]; row 0 is the initial state */
    float *outputs; /* [window][batch][symbols] probabilities, then deltas */
    float *bounded; /* [window][batch][hidden] tanh of the cells */
    float *d_gates; /* [window][batch][4 hidden] */
    float *d_states; /* [window][batch][hidden] */
    float *d_cell; /* [batch][hidden] */
};

/**
 * lstm_create - create a model.
 *
 * owner    the caller: lstm_destroy, also after an error
 * errors   -1: no memory
 */
int lstm_create(struct lstm *lstm, size_t symbols, size_t hidden, size_t batch,
                size_t window);
void lstm_destroy(struct lstm *lstm);

/** lstm_seed - draw the initial weights; the forget gate's biases are 1. */
void lstm_seed(const struct lstm *lstm, float *params, uint64_t seed);

/** lstm_forget - reset the state before another text. */
void lstm_forget(struct lstm *lstm);

/**
 * lstm_gradient - compute the gradient of the mean loss of a window.
 *
 * text     [batch][window + 1] symbols; each but the first is predicted from its
 *          predecessors
 * gradient receives n_params elements; NULL: compute only the loss
 * returns  the mean loss per symbol, in nats
 */
double lstm_gradient(struct lstm *lstm, const float *params, const uint8_t *text,
                     float *gradient);

#endif
