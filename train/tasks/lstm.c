/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/tasks/lstm.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum { INPUT, FORGET, CELL, OUTPUT, GATES };

int lstm_create(struct lstm *lstm, size_t symbols, size_t hidden, size_t batch,
                size_t window)
{
    const size_t row = batch * hidden;

    *lstm = (struct lstm){
        .symbols = symbols, .hidden = hidden, .batch = batch, .window = window};
    lstm->wh = lstm->wx + GATES * hidden * symbols;
    lstm->b = lstm->wh + GATES * hidden * hidden;
    lstm->wo = lstm->b + GATES * hidden;
    lstm->bo = lstm->wo + symbols * hidden;
    lstm->n_params = lstm->bo + symbols;
    lstm->gates = calloc(window * row * GATES, sizeof(float));
    lstm->cells = calloc((window + 1) * row, sizeof(float));
    lstm->states = calloc((window + 1) * row, sizeof(float));
    lstm->outputs = calloc(window * batch * symbols, sizeof(float));
    lstm->bounded = calloc(window * row, sizeof(float));
    lstm->d_gates = calloc(window * row * GATES, sizeof(float));
    lstm->d_states = calloc(window * row, sizeof(float));
    lstm->d_cell = calloc(row, sizeof(float));
    return lstm->gates && lstm->cells && lstm->states && lstm->outputs &&
                   lstm->bounded && lstm->d_gates && lstm->d_states && lstm->d_cell
               ? 0
               : -1;
}

void lstm_destroy(struct lstm *lstm)
{
    free(lstm->gates);
    free(lstm->cells);
    free(lstm->states);
    free(lstm->outputs);
    free(lstm->bounded);
    free(lstm->d_gates);
    free(lstm->d_states);
    free(lstm->d_cell);
    *lstm = (struct lstm){.symbols = 0};
}

void lstm_seed(const struct lstm *lstm, float *params, uint64_t seed)
{
    const struct trib_rng rng = {.seed = seed};
    const float limit = 1.0f / sqrtf((float)lstm->hidden);

    for (size_t i = 0; i < lstm->n_params; i++) {
        const struct trib_rng_block block = trib_rng_draw4(rng, i / 4);

        params[i] = limit * ((float)(block.word[i % 4] >> 8) * 0x1p-23f - 1.0f);
    }
    for (size_t i = lstm->b; i < lstm->wo; i++)
        params[i] = (i - lstm->b) / lstm->hidden == FORGET ? 1.0f : 0.0f;
    memset(params + lstm->bo, 0, lstm->symbols * sizeof(float));
}

void lstm_forget(struct lstm *lstm)
{
    const size_t row = lstm->batch * lstm->hidden * sizeof(float);

    memset(lstm->cells, 0, row);
    memset(lstm->states, 0, row);
}

/* exp(x) = 2^n exp(r), with |r| <= ln(2)/2 and a polynomial for exp(r); accurate to 2
 * ulp. Compilers vectorise it, unlike expf. */
static inline float exp_of(float x)
{
    const float magic = 0x1.8p23f; /* adding it rounds to an integer */
    const float above = x < -87.0f ? -87.0f : x;
    const float clamped = above > 88.0f ? 88.0f : above;
    const float n = (clamped * 1.44269504f + magic) - magic;
    const float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
    const float p =
        ((((1.9875691500e-4f * r + 1.3981999507e-3f) * r + 8.3334519073e-3f) * r +
          4.1665795894e-2f) *
             r +
         1.6666665459e-1f) *
            r +
        5.0000001201e-1f;
    const int32_t bits = ((int32_t)n + 127) << 23; /* 1 to 254 */
    float scale;

    memcpy(&scale, &bits, sizeof(scale));
    return (p * r * r + r + 1) * scale;
}

static inline float sigmoid(float x)
{
    return 1.0f / (1.0f + exp_of(-x));
}

/* tanh. */
static inline float bound(float x)
{
    return 2.0f * sigmoid(2.0f * x) - 1.0f;
}

static void add_to(float *restrict to, const float *restrict x, size_t n)
{
#pragma omp simd
    for (size_t k = 0; k < n; k++)
        to[k] += x[k];
}

static void add_both(float *restrict to, const float *restrict a,
                     const float *restrict b, size_t n)
{
#pragma omp simd
    for (size_t k = 0; k < n; k++)
        to[k] = a[k] + b[k];
}

static const uint8_t *symbol_at(const struct lstm *lstm, const uint8_t *text, size_t s,
                                size_t t)
{
    return text + s * (lstm->window + 1) + t;
}

/* Sum the inputs of the gates: biases, the weight row of the input symbol, recurrent
 * weights. */
static void sum_gates(const struct lstm *l, const float *params, const uint8_t *text,
                      size_t t)
{
    const int wide = (int)(GATES * l->hidden), hidden = (int)l->hidden;
    float *gates = l->gates + t * l->batch * GATES * l->hidden;

    for (size_t s = 0; s < l->batch; s++) {
        const float *row =
            params + l->wx + *symbol_at(l, text, s, t) * GATES * l->hidden;
        float *to = gates + s * GATES * l->hidden;

        add_both(to, params + l->b, row, GATES * l->hidden);
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)l->batch, wide, hidden, 1,
                l->states + t * l->batch * l->hidden, hidden, params + l->wh, hidden, 1,
                gates, wide);
}

/* Compute gates, cell and state of a sample from the sums of its gates. */
static void open_gates(size_t h, float *restrict g, const float *restrict before,
                       float *restrict cell, float *restrict bounded,
                       float *restrict state)
{
#pragma omp simd
    for (size_t k = 0; k < h; k++) {
        const float in = sigmoid(g[INPUT * h + k]), kept = sigmoid(g[FORGET * h + k]);
        const float new = bound(g[CELL * h + k]), out = sigmoid(g[OUTPUT * h + k]);
        const float c = kept * before[k] + in * new;

        g[INPUT * h + k] = in;
        g[FORGET * h + k] = kept;
        g[CELL * h + k] = new;
        g[OUTPUT * h + k] = out;
        cell[k] = c;
        bounded[k] = bound(c);
        state[k] = out * bounded[k];
    }
}

static void step_forward(const struct lstm *l, const float *params, const uint8_t *text,
                         size_t t)
{
    const size_t h = l->hidden, row = l->batch * h;

    sum_gates(l, params, text, t);
    for (size_t s = 0; s < l->batch; s++) {
        const size_t now = t * row + s * h, next = now + row;

        open_gates(h, l->gates + GATES * now, l->cells + now, l->cells + next,
                   l->bounded + now, l->states + next);
    }
}

/* Replace each x by exp(x - most); return the sum. */
static float exp_all(float *x, size_t n, float most)
{
    float sum = 0;

#pragma omp simd reduction(+ : sum)
    for (size_t k = 0; k < n; k++) {
        x[k] = exp_of(x[k] - most);
        sum += x[k];
    }
    return sum;
}

/* Replace the outputs of step t by deltas of the next symbols; return the sum of the
 * losses. */
static double softmax(const struct lstm *l, const uint8_t *text, size_t t)
{
    const float scale = 1.0f / (float)(l->batch * l->window);
    double loss = 0;

    for (size_t s = 0; s < l->batch; s++) {
        float *out = l->outputs + (t * l->batch + s) * l->symbols, most = out[0];
        const uint8_t next = *symbol_at(l, text, s, t + 1);

        for (size_t k = 1; k < l->symbols; k++)
            most = out[k] > most ? out[k] : most;
        loss += (double)(most - out[next]);
        const float sum = exp_all(out, l->symbols, most);
        loss += (double)logf(sum);
        for (size_t k = 0; k < l->symbols; k++)
            out[k] *= scale / sum;
        out[next] -= scale;
    }
    return loss;
}

static double forward(const struct lstm *l, const float *params, const uint8_t *text)
{
    const size_t row = l->batch * l->hidden;
    const int n = (int)(l->window * l->batch), v = (int)l->symbols, h = (int)l->hidden;
    double loss = 0;

    for (size_t t = 0; t < l->window; t++)
        step_forward(l, params, text, t);
    for (size_t i = 0; i < l->window * l->batch; i++)
        memcpy(l->outputs + i * l->symbols, params + l->bo, l->symbols * sizeof(float));
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, v, h, 1, l->states + row, h,
                params + l->wo, h, 1, l->outputs, v);
    for (size_t t = 0; t < l->window; t++)
        loss += softmax(l, text, t);
    return loss / (double)n;
}

/* Propagate the deltas of a sample's state and cell to its gates and the previous
 * cell. */
static void close_gates(size_t h, const float *restrict g, const float *restrict before,
                        const float *restrict bounded, const float *restrict ds,
                        float *restrict dc, float *restrict dg)
{
#pragma omp simd
    for (size_t k = 0; k < h; k++) {
        const float i = g[INPUT * h + k], f = g[FORGET * h + k];
        const float c = g[CELL * h + k], o = g[OUTPUT * h + k], y = bounded[k];
        const float d = dc[k] + ds[k] * o * (1 - y * y);

        dg[OUTPUT * h + k] = ds[k] * y * o * (1 - o);
        dg[INPUT * h + k] = d * c * i * (1 - i);
        dg[CELL * h + k] = d * i * (1 - c * c);
        dg[FORGET * h + k] = d * before[k] * f * (1 - f);
        dc[k] = d * f;
    }
}

static void step_backward(const struct lstm *l, size_t t)
{
    const size_t h = l->hidden, row = l->batch * h;

    for (size_t s = 0; s < l->batch; s++) {
        const size_t now = t * row + s * h;

        close_gates(h, l->gates + GATES * now, l->cells + now, l->bounded + now,
                    l->d_states + now, l->d_cell + s * h, l->d_gates + GATES * now);
    }
}

static void add_input_weights(const struct lstm *l, const uint8_t *text, size_t t,
                              float *gradient)
{
    for (size_t s = 0; s < l->batch; s++) {
        float *row = gradient + l->wx + *symbol_at(l, text, s, t) * GATES * l->hidden;
        const float *dg = l->d_gates + (t * l->batch + s) * GATES * l->hidden;

        add_to(row, dg, GATES * l->hidden);
        add_to(gradient + l->b, dg, GATES * l->hidden);
    }
}

static void backward(const struct lstm *l, const float *params, const uint8_t *text,
                     float *gradient)
{
    const size_t row = l->batch * l->hidden;
    const int v = (int)l->symbols, h = (int)l->hidden, wide = (int)(GATES * l->hidden);
    const int n = (int)(l->window * l->batch), batch = (int)l->batch;

    memset(gradient, 0, l->n_params * sizeof(float));
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, v, h, n, 1, l->outputs, v,
                l->states + row, h, 0, gradient + l->wo, h);
    for (size_t i = 0; i < l->window * l->batch; i++)
        add_to(gradient + l->bo, l->outputs + i * l->symbols, l->symbols);
    memset(l->d_cell, 0, row * sizeof(float));
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, h, v, 1, l->outputs, v,
                params + l->wo, h, 0, l->d_states, h);
    for (size_t t = l->window; t-- > 0;) {
        step_backward(l, t);
        add_input_weights(l, text, t, gradient);
        if (t > 0)
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, batch, h, wide, 1,
                        l->d_gates + t * row * GATES, wide, params + l->wh, h, 1,
                        l->d_states + (t - 1) * row, h);
    }
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, wide, h, n, 1, l->d_gates,
                wide, l->states, h, 1, gradient + l->wh, h);
}

double lstm_gradient(struct lstm *lstm, const float *params, const uint8_t *text,
                     float *gradient)
{
    const size_t row = lstm->batch * lstm->hidden;
    const double loss = forward(lstm, params, text);

    if (gradient)
        backward(lstm, params, text, gradient);
    memcpy(lstm->cells, lstm->cells + lstm->window * row, row * sizeof(float));
    memcpy(lstm->states, lstm->states + lstm->window * row, row * sizeof(float));
    return loss;
}
