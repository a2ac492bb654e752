/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/tasks/network.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

static size_t outputs_of(const struct net_layer *l)
{
    return l->out_channels * l->out_height * l->out_width;
}

static size_t inputs_of(const struct net_layer *l)
{
    return l->channels * l->height * l->width;
}

void net_begin(struct net *net, size_t channels, size_t height, size_t width)
{
    *net = (struct net){.n_layers = 0};
    net->layers[0] =
        (struct net_layer){.channels = channels, .height = height, .width = width};
}

/* Complete the current layer and set the input shape of the next. */
static void add(struct net *net)
{
    struct net_layer *l = &net->layers[net->n_layers++];

    l->first = net->n_params;
    net->n_params += l->weights + l->biases;
    if (net->n_layers < NET_LAYERS_MAX)
        net->layers[net->n_layers] = (struct net_layer){.channels = l->out_channels,
                                                        .height = l->out_height,
                                                        .width = l->out_width};
}

void net_dense(struct net *net, size_t outputs, int relu)
{
    struct net_layer *l = &net->layers[net->n_layers];

    l->kind = NET_DENSE;
    l->relu = relu;
    l->out_channels = outputs;
    l->out_height = l->out_width = 1;
    l->weights = outputs * inputs_of(l);
    l->biases = outputs;
    add(net);
}

void net_conv(struct net *net, size_t channels, size_t side, size_t stride, int relu)
{
    struct net_layer *l = &net->layers[net->n_layers];

    l->kind = NET_CONV;
    l->relu = relu;
    l->side = side;
    l->stride = stride;
    l->out_channels = channels;
    l->out_height = (l->height + stride - 1) / stride;
    l->out_width = (l->width + stride - 1) / stride;
    l->weights = channels * l->channels * side * side;
    l->biases = channels;
    add(net);
}

void net_pool(struct net *net)
{
    struct net_layer *l = &net->layers[net->n_layers];

    l->kind = NET_POOL;
    l->out_channels = l->channels;
    l->out_height = l->height / 2;
    l->out_width = l->width / 2;
    add(net);
}

void net_mean(struct net *net)
{
    struct net_layer *l = &net->layers[net->n_layers];

    l->kind = NET_MEAN;
    l->out_channels = l->channels;
    l->out_height = l->out_width = 1;
    add(net);
}

int net_finish(struct net *net, size_t batch_max)
{
    size_t columns = 1;
    int good = 1;

    net->batch_max = batch_max;
    for (int i = 0; i < net->n_layers; i++) {
        struct net_layer *l = &net->layers[i];
        const size_t n = batch_max * outputs_of(l);
        const size_t column =
            l->channels * l->side * l->side * l->out_height * l->out_width;

        l->outputs = calloc(n, sizeof(float));
        l->deltas = calloc(n, sizeof(float));
        l->from = l->kind == NET_POOL ? calloc(n, sizeof(*l->from)) : NULL;
        good &= l->outputs && l->deltas && (l->from || l->kind != NET_POOL);
        columns = column > columns ? column : columns;
    }
    net->columns = calloc(columns, sizeof(float));
    return good && net->columns ? 0 : -1;
}

void net_destroy(struct net *net)
{
    for (int i = 0; i < net->n_layers; i++) {
        free(net->layers[i].outputs);
        free(net->layers[i].deltas);
        free(net->layers[i].from);
    }
    free(net->columns);
    *net = (struct net){.n_layers = 0};
}

/* Return a uniform number in [-1, 1). */
static float uniform(uint64_t seed, uint64_t index)
{
    const struct trib_rng rng = {.seed = seed};
    const struct trib_rng_block block = trib_rng_draw4(rng, index / 4);

    return (float)(block.word[index % 4] >> 8) * 0x1p-23f - 1.0f;
}

void net_seed(const struct net *net, float *params, uint64_t seed)
{
    for (int i = 0; i < net->n_layers; i++) {
        const struct net_layer *l = &net->layers[i];
        const float limit =
            l->weights ? sqrtf(6.0f * (float)l->biases / (float)l->weights) : 0;

        for (size_t k = 0; k < l->weights; k++)
            params[l->first + k] = limit * uniform(seed, l->first + k);
        memset(params + l->first + l->weights, 0, l->biases * sizeof(float));
    }
}

/* ---- convolutions as matrix products -------------------------------------------- */

/* Columns are planes [channels][side][side] of [out_height][out_width]. With stride 1 a
 * plane is the shifted image: one contiguous range, whose rows have zeros at one
 * end. */
struct moved {
    ptrdiff_t by; /* offset from an element of the plane to its pixel */
    size_t from, to; /* the range; the plane is zero outside of it */
    size_t left, right; /* zeros at the ends of each row */
};

static struct moved move_of(const struct net_layer *l, size_t dy, size_t dx)
{
    const size_t pad = l->side / 2;
    const size_t up = dy < pad ? pad - dy : 0, down = dy > pad ? dy - pad : 0;
    struct moved m = {.left = dx < pad ? pad - dx : 0,
                      .right = dx > pad ? dx - pad : 0};

    m.by = ((ptrdiff_t)dy - (ptrdiff_t)pad) * (ptrdiff_t)l->width + (ptrdiff_t)dx -
           (ptrdiff_t)pad;
    if (up + down < l->height && m.left + m.right < l->width) {
        m.from = up * l->width + m.left;
        m.to = (l->height - down) * l->width - m.right;
    }
    return m;
}

/* Clear the elements between the rows of the range. */
static void clear_between_rows(const struct net_layer *l, const struct moved *m,
                               float *plane)
{
    const size_t ends = m->left + m->right;

    for (size_t i = m->from + l->width - ends; i < m->to; i += l->width)
        for (size_t k = 0; k < ends; k++)
            plane[i + k] = 0;
}

static void move_to_plane(const struct net_layer *l, const struct moved *m,
                          const float *image, float *plane)
{
    const size_t pixels = l->height * l->width;

    memset(plane, 0, m->from * sizeof(float));
    if (m->to > m->from)
        memcpy(plane + m->from, image + ((ptrdiff_t)m->from + m->by),
               (m->to - m->from) * sizeof(float));
    memset(plane + m->to, 0, (pixels - m->to) * sizeof(float));
    clear_between_rows(l, m, plane);
}

static void add_plane(const struct net_layer *l, const struct moved *m, float *plane,
                      float *image)
{
    const ptrdiff_t from = (ptrdiff_t)m->from + m->by;
    const size_t n = m->to - m->from;

    clear_between_rows(l, m, plane);
#pragma omp simd
    for (size_t i = 0; i < n; i++)
        image[from + (ptrdiff_t)i] += plane[m->from + i];
}

/* For any stride: run `code` for each element of the columns, with the index of its
 * pixel, or -1 outside of the image. */
#define EACH_COLUMN(l, at, pixel, code) \
    do { \
        const ptrdiff_t pad_ = (ptrdiff_t)((l)->side / 2); \
        size_t at = 0; \
        for (size_t c_ = 0; c_ < (l)->channels; c_++) \
            for (size_t dy_ = 0; dy_ < (l)->side; dy_++) \
                for (size_t dx_ = 0; dx_ < (l)->side; dx_++) \
                    for (size_t y_ = 0; y_ < (l)->out_height; y_++) { \
                        const ptrdiff_t iy_ = \
                            (ptrdiff_t)(y_ * (l)->stride + dy_) - pad_; \
                        for (size_t x_ = 0; x_ < (l)->out_width; x_++, at++) { \
                            const ptrdiff_t ix_ = \
                                (ptrdiff_t)(x_ * (l)->stride + dx_) - pad_; \
                            const ptrdiff_t pixel = \
                                iy_ < 0 || ix_ < 0 || iy_ >= (ptrdiff_t)(l)->height || \
                                        ix_ >= (ptrdiff_t)(l)->width \
                                    ? -1 \
                                    : ((ptrdiff_t)c_ * (ptrdiff_t)(l)->height + iy_) * \
                                              (ptrdiff_t)(l)->width + \
                                          ix_; \
                            code; \
                        } \
                    } \
    } while (0)

static void to_columns(const struct net_layer *l, const float *image, float *columns)
{
    const size_t pixels = l->height * l->width;

    if (l->stride > 1) {
        EACH_COLUMN(l, at, pixel, columns[at] = pixel < 0 ? 0 : image[pixel]);
        return;
    }
    for (size_t c = 0; c < l->channels; c++)
        for (size_t k = 0; k < l->side * l->side; k++, columns += pixels) {
            const struct moved m = move_of(l, k / l->side, k % l->side);

            move_to_plane(l, &m, image + c * pixels, columns);
        }
}

/* Add the columns to the image. Overwrites parts of the columns. */
static void add_columns(const struct net_layer *l, float *columns, float *image)
{
    const size_t pixels = l->height * l->width;

    if (l->stride > 1) {
        EACH_COLUMN(l, at, pixel, if (pixel >= 0) image[pixel] += columns[at]);
        return;
    }
    for (size_t c = 0; c < l->channels; c++)
        for (size_t k = 0; k < l->side * l->side; k++, columns += pixels) {
            const struct moved m = move_of(l, k / l->side, k % l->side);

            add_plane(l, &m, columns, image + c * pixels);
        }
}

static void add_to(float *restrict to, const float *restrict x, size_t n)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++)
        to[i] += x[i];
}

static void fill(float *to, size_t n, float value)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++)
        to[i] = value;
}

static float sum_of(const float *x, size_t n)
{
    float sum = 0;

#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

/* ---- forward --------------------------------------------------------------------- */

static void relu(const struct net_layer *l, size_t count)
{
    const size_t n = l->relu ? count * outputs_of(l) : 0;

#pragma omp simd
    for (size_t i = 0; i < n; i++)
        l->outputs[i] = l->outputs[i] > 0 ? l->outputs[i] : 0;
}

static void dense_forward(const struct net_layer *l, const float *params,
                          const float *in, size_t count)
{
    const float *w = params + l->first, *b = w + l->weights;
    const int out = (int)l->out_channels, ins = (int)inputs_of(l);

    for (size_t s = 0; s < count; s++)
        memcpy(l->outputs + s * l->out_channels, b, l->biases * sizeof(float));
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)count, out, ins, 1, in,
                ins, w, ins, 1, l->outputs, out);
}

static void conv_forward(const struct net *net, const struct net_layer *l,
                         const float *params, const float *in, size_t count)
{
    const float *w = params + l->first, *b = w + l->weights;
    const size_t pixels = l->out_height * l->out_width;
    const int depth = (int)(l->channels * l->side * l->side);

    for (size_t s = 0; s < count; s++) {
        float *out = l->outputs + s * outputs_of(l);

        for (size_t c = 0; c < l->out_channels; c++)
            fill(out + c * pixels, pixels, b[c]);
        to_columns(l, in + s * inputs_of(l), net->columns);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)l->out_channels,
                    (int)pixels, depth, 1, w, depth, net->columns, (int)pixels, 1, out,
                    (int)pixels);
    }
}

/* Take the maximum of four inputs each, the first in a tie. Branch-free, because the
 * branches would be unpredictable. */
static void pool_row(const float *in, size_t corner, size_t width, size_t outs,
                     float *out, uint32_t *from)
{
    const float *above = in + corner, *below = above + width;

    for (size_t x = 0; x < outs; x++) {
        const size_t right = above[2 * x + 1] > above[2 * x];
        const size_t right_below = below[2 * x + 1] > below[2 * x];
        const float most[2] = {above[2 * x + right], below[2 * x + right_below]};
        const size_t steps[2] = {right, width + right_below};
        const size_t lower = most[1] > most[0];

        out[x] = most[lower];
        from[x] = (uint32_t)(corner + 2 * x + steps[lower]);
    }
}

static void pool_forward(const struct net_layer *l, const float *in, size_t count)
{
    size_t at = 0;

    for (size_t s = 0; s < count; s++)
        for (size_t c = 0; c < l->channels; c++)
            for (size_t y = 0; y < l->out_height; y++, at += l->out_width)
                pool_row(in + s * inputs_of(l), (c * l->height + 2 * y) * l->width,
                         l->width, l->out_width, l->outputs + at, l->from + at);
}

static void mean_forward(const struct net_layer *l, const float *in, size_t count)
{
    const size_t pixels = l->height * l->width;

    for (size_t i = 0; i < count * l->channels; i++)
        l->outputs[i] = sum_of(in + i * pixels, pixels) / (float)pixels;
}

static const float *forward(struct net *net, const float *params, const float *inputs,
                            size_t count)
{
    const float *in = inputs;

    net->inputs = inputs;
    for (int i = 0; i < net->n_layers; i++) {
        const struct net_layer *l = &net->layers[i];

        switch (l->kind) {
        case NET_DENSE:
            dense_forward(l, params, in, count);
            break;
        case NET_CONV:
            conv_forward(net, l, params, in, count);
            break;
        case NET_POOL:
            pool_forward(l, in, count);
            break;
        case NET_MEAN:
            mean_forward(l, in, count);
            break;
        }
        relu(l, count);
        in = l->outputs;
    }
    return in;
}

/* ---- backward -------------------------------------------------------------------- */

/* Compute the deltas of the last layer; return the mean loss. */
static double softmax_loss(const struct net_layer *l, const uint8_t *labels,
                           size_t count)
{
    const size_t n = l->out_channels;
    double loss = 0;

    for (size_t s = 0; s < count; s++) {
        const float *out = l->outputs + s * n;
        float *delta = l->deltas + s * n, most = out[0];
        double sum = 0;

        for (size_t k = 1; k < n; k++)
            most = out[k] > most ? out[k] : most;
        for (size_t k = 0; k < n; k++)
            sum += exp((double)(out[k] - most));
        for (size_t k = 0; k < n; k++)
            delta[k] = (float)(exp((double)(out[k] - most)) / sum / (double)count);
        delta[labels[s]] -= 1.0f / (float)count;
        loss += log(sum) - (double)(out[labels[s]] - most);
    }
    return loss / (double)count;
}

static void dense_backward(const struct net_layer *l, const float *params,
                           const float *in, float *in_deltas, size_t count,
                           float *gradient)
{
    float *gw = gradient + l->first, *gb = gw + l->weights;
    const int out = (int)l->out_channels, ins = (int)inputs_of(l);

    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, out, ins, (int)count, 1,
                l->deltas, out, in, ins, 0, gw, ins);
    memset(gb, 0, l->biases * sizeof(float));
    for (size_t s = 0; s < count; s++)
        add_to(gb, l->deltas + s * l->biases, l->biases);
    if (in_deltas)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)count, ins, out, 1,
                    l->deltas, out, params + l->first, ins, 0, in_deltas, ins);
}

static void conv_backward(const struct net *net, const struct net_layer *l,
                          const float *params, const float *in, float *in_deltas,
                          size_t count, float *gradient)
{
    const size_t pixels = l->out_height * l->out_width;
    const int depth = (int)(l->channels * l->side * l->side), n = (int)pixels;
    float *gw = gradient + l->first, *gb = gw + l->weights;

    memset(gw, 0, (l->weights + l->biases) * sizeof(float));
    if (in_deltas)
        memset(in_deltas, 0, count * inputs_of(l) * sizeof(float));
    for (size_t s = 0; s < count; s++) {
        const float *delta = l->deltas + s * outputs_of(l);

        to_columns(l, in + s * inputs_of(l), net->columns);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)l->out_channels,
                    depth, n, 1, delta, n, net->columns, n, 1, gw, depth);
        for (size_t c = 0; c < l->out_channels; c++)
            gb[c] += sum_of(delta + c * pixels, pixels);
        if (!in_deltas)
            continue;
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, depth, n,
                    (int)l->out_channels, 1, params + l->first, depth, delta, n, 0,
                    net->columns, n);
        add_columns(l, net->columns, in_deltas + s * inputs_of(l));
    }
}

static void pool_backward(const struct net_layer *l, float *in_deltas, size_t count)
{
    const size_t outs = outputs_of(l), ins = inputs_of(l);

    memset(in_deltas, 0, count * ins * sizeof(float));
    for (size_t s = 0; s < count; s++)
        for (size_t i = 0; i < outs; i++)
            in_deltas[s * ins + l->from[s * outs + i]] += l->deltas[s * outs + i];
}

static void mean_backward(const struct net_layer *l, float *in_deltas, size_t count)
{
    const size_t pixels = l->height * l->width;

    for (size_t i = 0; i < count * l->channels; i++)
        for (size_t p = 0; p < pixels; p++)
            in_deltas[i * pixels + p] = l->deltas[i] / (float)pixels;
}

static void relu_backward(const struct net_layer *l, size_t count)
{
    const size_t n = l->relu ? count * outputs_of(l) : 0;

#pragma omp simd
    for (size_t k = 0; k < n; k++)
        l->deltas[k] = l->outputs[k] > 0 ? l->deltas[k] : 0;
}

static void backward(struct net *net, int i, const float *params, size_t count,
                     float *gradient)
{
    const struct net_layer *l = &net->layers[i], *below = i > 0 ? l - 1 : NULL;
    const float *in = below ? below->outputs : net->inputs;
    float *in_deltas = below ? below->deltas : NULL;

    if (l->kind == NET_DENSE)
        dense_backward(l, params, in, in_deltas, count, gradient);
    else if (l->kind == NET_CONV)
        conv_backward(net, l, params, in, in_deltas, count, gradient);
    else if (in_deltas && l->kind == NET_POOL)
        pool_backward(l, in_deltas, count);
    else if (in_deltas)
        mean_backward(l, in_deltas, count);
    if (below)
        relu_backward(below, count);
}

double net_gradient(struct net *net, const float *params, const float *inputs,
                    const uint8_t *labels, size_t count, float *gradient,
                    net_ready_fn ready, void *arg)
{
    const struct net_layer *last = &net->layers[net->n_layers - 1];

    forward(net, params, inputs, count);
    const double loss = softmax_loss(last, labels, count);
    for (int i = net->n_layers - 1; i >= 0; i--) {
        const struct net_layer *l = &net->layers[i];

        backward(net, i, params, count, gradient);
        if (ready && l->weights > 0 &&
            ready(arg, l->first, l->weights + l->biases) != 0)
            return -1;
    }
    return loss;
}

size_t net_correct(struct net *net, const float *params, const float *inputs,
                   const uint8_t *labels, size_t count)
{
    const float *out = forward(net, params, inputs, count);
    const size_t n = net->layers[net->n_layers - 1].out_channels;
    size_t correct = 0;

    for (size_t s = 0; s < count; s++) {
        size_t best = 0;

        for (size_t k = 1; k < n; k++)
            best = out[s * n + k] > out[s * n + best] ? k : best;
        correct += best == labels[s];
    }
    return correct;
}
