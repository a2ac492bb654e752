/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/models/conv1d.h"

#include <assert.h>
#include <math.h>
#include <string.h>

size_t trib_layer_length(const struct trib_layer *l, size_t length)
{
    if (l->transposed)
        return length ? l->stride * (length - 1) + l->taps : 0;
    return length >= l->taps ? (length - l->taps) / l->stride + 1 : 0;
}

static size_t weights_of(const struct trib_layer *l)
{
    return l->in * l->out * l->taps;
}

size_t trib_layer_weights(const struct trib_layer *l)
{
    return weights_of(l) + l->out;
}

/*
 * The longer signal becomes a matrix of columns: row (c, t) is channel c from sample t,
 * every stride-th sample, `count` of them.
 */
struct columns {
    size_t channels, taps, stride;
    size_t length; /* of the longer signal */
    size_t count;
};

static struct columns columns_of(const struct trib_layer *l, size_t length)
{
    const size_t other = trib_layer_length(l, length);
    return (struct columns){.channels = l->transposed ? l->out : l->in,
                            .taps = l->taps,
                            .stride = l->stride,
                            .length = l->transposed ? other : length,
                            .count = l->transposed ? length : other};
}

size_t trib_layer_columns(const struct trib_layer *l, size_t length)
{
    const struct columns c = columns_of(l, length);
    return c.channels * c.taps * c.count;
}

static void to_columns(const struct columns *c, const float *signal, float *columns)
{
    for (size_t channel = 0; channel < c->channels; channel++) {
        for (size_t t = 0; t < c->taps; t++) {
            const float *from = signal + channel * c->length + t;
            for (size_t i = 0; i < c->count; i++)
                columns[i] = from[i * c->stride];
            columns += c->count;
        }
    }
}

static void add_columns(const struct columns *c, const float *columns, float *signal)
{
    for (size_t channel = 0; channel < c->channels; channel++) {
        for (size_t t = 0; t < c->taps; t++) {
            float *to = signal + channel * c->length + t;
            for (size_t i = 0; i < c->count; i++)
                to[i * c->stride] += columns[i];
            columns += c->count;
        }
    }
}

/* ---- forward -------------------------------------------------------------------- */

static void fill_bias(const float *bias, size_t channels, float *y, size_t length)
{
    for (size_t o = 0; o < channels; o++)
        for (size_t i = 0; i < length; i++)
            y[o * length + i] = bias[o];
}

static void activate(float slope, float *y, size_t n)
{
    for (size_t i = 0; slope != 1.0f && i < n; i++)
        y[i] *= y[i] > 0.0f ? 1.0f : slope;
}

void trib_layer_forward(const struct trib_layer_run *r)
{
    const struct trib_layer *l = r->layer;
    const struct columns c = columns_of(l, r->length);
    const size_t length = trib_layer_length(l, r->length), rows = c.channels * c.taps;
    struct trib_gemm g = {.n = c.count, .ldb = c.count, .ldc = c.count, .a = r->weights,
                          .lda = rows, .scratch = r->scratch};
    assert(l->slope > 0 && length);
    fill_bias(r->weights + weights_of(l), l->out, r->y, length);
    if (l->transposed) { /* columns = W^T x */
        g.m = rows, g.k = l->in, g.a_transposed = true;
        g.b = r->x, g.c = r->columns;
        r->kernels->gemm(&g);
        add_columns(&c, r->columns, r->y);
    } else { /* y += W columns */
        to_columns(&c, r->x, r->columns);
        g.m = l->out, g.k = rows, g.add = true;
        g.b = r->columns, g.c = r->y;
        r->kernels->gemm(&g);
    }
    activate(l->slope, r->y, l->out * length);
}

/* ---- backward ------------------------------------------------------------------- */

/* f preserves the sign, so y shows which branch was taken */
static void through_activation(float slope, const float *y, float *dy, size_t n)
{
    for (size_t i = 0; slope != 1.0f && i < n; i++)
        dy[i] *= y[i] > 0.0f ? 1.0f : slope;
}

static void add_bias(float *dbias, size_t channels, const float *dy, size_t length)
{
    for (size_t o = 0; o < channels; o++) {
        double sum = 0;
        for (size_t i = 0; i < length; i++)
            sum += (double)dy[o * length + i];
        dbias[o] += (float)sum;
    }
}

/* dW += dy columns^T; dx from W^T dy */
static void backward_plain(const struct trib_layer_run *r, const struct columns *c,
                           const float *dy, float *dx, float *dweights)
{
    const struct trib_layer *l = r->layer;
    const size_t rows = c->channels * c->taps;
    struct trib_gemm g = {.m = l->out, .n = rows, .k = c->count,
                          .a = dy, .b = r->columns, .c = dweights,
                          .lda = c->count, .ldb = c->count, .ldc = rows,
                          .b_transposed = true, .add = true, .scratch = r->scratch};
    to_columns(c, r->x, r->columns);
    r->kernels->gemm(&g);
    if (!dx)
        return;
    g = (struct trib_gemm){.m = rows, .n = c->count, .k = l->out,
                           .a = r->weights, .b = dy, .c = r->columns,
                           .lda = rows, .ldb = c->count, .ldc = c->count,
                           .a_transposed = true, .scratch = r->scratch};
    r->kernels->gemm(&g);
    memset(dx, 0, l->in * r->length * sizeof *dx);
    add_columns(c, r->columns, dx);
}

/* dW += x columns^T, with columns of dy; dx = W columns */
static void backward_transposed(const struct trib_layer_run *r, const struct columns *c,
                                const float *dy, float *dx, float *dweights)
{
    const struct trib_layer *l = r->layer;
    const size_t rows = c->channels * c->taps;
    struct trib_gemm g = {.m = l->in, .n = rows, .k = c->count,
                          .a = r->x, .b = r->columns, .c = dweights,
                          .lda = c->count, .ldb = c->count, .ldc = rows,
                          .b_transposed = true, .add = true, .scratch = r->scratch};
    to_columns(c, dy, r->columns);
    r->kernels->gemm(&g);
    if (!dx)
        return;
    g = (struct trib_gemm){.m = l->in, .n = c->count, .k = rows,
                           .a = r->weights, .b = r->columns, .c = dx,
                           .lda = rows, .ldb = c->count, .ldc = c->count,
                           .scratch = r->scratch};
    r->kernels->gemm(&g);
}

void trib_layer_backward(const struct trib_layer_run *r, float *dy, float *dx,
                         float *dweights)
{
    const struct trib_layer *l = r->layer;
    const struct columns c = columns_of(l, r->length);
    const size_t length = trib_layer_length(l, r->length);
    through_activation(l->slope, r->y, dy, l->out * length);
    add_bias(dweights + weights_of(l), l->out, dy, length);
    if (l->transposed)
        backward_transposed(r, &c, dy, dx, dweights);
    else
        backward_plain(r, &c, dy, dx, dweights);
}

/* ---- resize --------------------------------------------------------------------- */

/* The two neighbours of a sample, and the weight of the second. */
struct between {
    size_t first, second;
    float share;
};

static struct between between_of(size_t i, size_t from, size_t to)
{
    const double at = fmax(((double)i + 0.5) * (double)from / (double)to - 0.5, 0);
    const size_t first = (size_t)at < from - 1 ? (size_t)at : from - 1;
    return (struct between){.first = first,
                            .second = first + 1 < from ? first + 1 : first,
                            .share = (float)(at - (double)first)};
}

void trib_resize_forward(const float *x, size_t from, float *y, size_t to)
{
    for (size_t i = 0; i < to; i++) {
        const struct between b = between_of(i, from, to);
        y[i] = (1.0f - b.share) * x[b.first] + b.share * x[b.second];
    }
}

void trib_resize_backward(float *dx, size_t from, const float *dy, size_t to)
{
    memset(dx, 0, from * sizeof *dx);
    for (size_t i = 0; i < to; i++) {
        const struct between b = between_of(i, from, to);
        dx[b.first] += (1.0f - b.share) * dy[i];
        dx[b.second] += b.share * dy[i];
    }
}
