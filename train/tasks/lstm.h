/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A character model: one LSTM layer, a softmax over the next character (Hochreiter &
 * Schmidhuber, Neural Computation 1997), on OpenBLAS. Back-propagation goes through a
 * window of characters, and the state goes on from window to window.
 *
 * Parameters are ONE vector: input weights [symbols][4 hidden] and recurrent weights
 * [4 hidden][hidden] of the gates input, forget, cell, output, their biases [4 hidden],
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
    float *gates; /* [window][batch][4 hidden] after their functions */
    float *cells; /* [window + 1][batch][hidden]; row 0 is the state before */
    float *states; /* [window + 1][batch][hidden], likewise */
    float *outputs; /* [window][batch][symbols] probabilities, then deltas */
    float *bounded; /* [window][batch][hidden] tanh of the cells */
    float *d_gates; /* [window][batch][4 hidden] */
    float *d_states; /* [window][batch][hidden] */
    float *d_cell; /* [batch][hidden] */
};

/**
 * lstm_create - a model.
 *
 * owner    the caller: lstm_destroy, also after an error
 * errors   -1: no memory
 */
int lstm_create(struct lstm *lstm, size_t symbols, size_t hidden, size_t batch,
                size_t window);
void lstm_destroy(struct lstm *lstm);

/** lstm_seed - draw the first weights; the forget gate's biases are 1. */
void lstm_seed(const struct lstm *lstm, float *params, uint64_t seed);

/** lstm_forget - begin with an empty state: another text follows. */
void lstm_forget(struct lstm *lstm);

/**
 * lstm_gradient - the gradient of the mean loss of a window.
 *
 * text     [batch][window + 1] symbols: each is to be foretold from those before it
 * gradient receives n_params elements; NULL: only the loss is wanted
 * returns  the mean loss of a symbol in nats
 */
double lstm_gradient(struct lstm *lstm, const float *params, const uint8_t *text,
                     float *gradient);

#endif
