/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The gradients of models against central differences of their losses; and how samples
 * are dealt.
 */
#include <cblas.h>
#include <math.h>

#include "tests/harness/tribtest.h"
#include "train/tasks/lstm.h"
#include "train/tasks/mnist.h"
#include "train/tasks/rows.h"
#include "train/tasks/shares.h"

enum { SIDE = 12, BATCH = 3, PROBES = 60 };

/* A model with its samples: the loss at some parameters, and its gradient. */
struct model {
    size_t n_params;
    void (*gradient)(const struct model *model, const float *params, float *gradient,
                     double *loss);
    struct net *net;
    struct lstm *lstm;
    const float *inputs;
    const uint8_t *labels;
    float *start; /* [n_params] where to differentiate */
};

/* Central differences at some parameters, spread over the vector. A ReLU or the largest
 * of a pool may change between the two points, so one probe in twelve may be off. */
static void check_slopes(const struct model *m)
{
    float *gradient = calloc(m->n_params, sizeof(float));
    float *other = calloc(m->n_params, sizeof(float));
    const float h = 2e-3f;
    double loss, steepest = 0;
    int off = 0;

    assert_non_null(gradient);
    assert_non_null(other);
    m->gradient(m, m->start, gradient, &loss);
    for (size_t k = 0; k < PROBES; k++) {
        const size_t i = (k * 2654435761u + 1) % m->n_params;
        const float kept = m->start[i];
        double above, below;

        m->start[i] = kept + h;
        m->gradient(m, m->start, other, &above);
        m->start[i] = kept - h;
        m->gradient(m, m->start, other, &below);
        m->start[i] = kept;
        const double slope = (above - below) / (2 * (double)h);
        off += fabs(slope - (double)gradient[i]) > 1e-3 + 0.02 * fabs(slope);
        steepest = fmax(steepest, fabs(slope));
    }
    free(gradient);
    free(other);
    assert_true(steepest > 1e-2);
    assert_true(off <= PROBES / 12);
}

/* --- networks --- */

static void build_dense(struct net *net)
{
    net_dense(net, 9, 1);
    net_dense(net, 8, 1);
}

static void build_conv(struct net *net)
{
    net_conv(net, 3, 3, 1, 1);
    net_pool(net);
    net_conv(net, 4, 5, 1, 1);
    net_pool(net);
    net_dense(net, 6, 1);
}

static void build_stride(struct net *net)
{
    net_conv(net, 3, 5, 2, 1);
    net_conv(net, 4, 3, 1, 1);
    net_mean(net);
}

static void of_net(const struct model *m, const float *params, float *gradient,
                   double *loss)
{
    *loss =
        net_gradient(m->net, params, m->inputs, m->labels, BATCH, gradient, NULL, NULL);
}

static void check_net(void (*build)(struct net *net))
{
    static float inputs[BATCH * SIDE * SIDE];
    static const uint8_t labels[BATCH] = {3, 0, 2};
    struct net net;

    net_begin(&net, 1, SIDE, SIDE);
    build(&net);
    net_dense(&net, 4, 0);
    assert_int_equal(net_finish(&net, BATCH), 0);
    for (size_t i = 0; i < BATCH * SIDE * SIDE; i++)
        inputs[i] = (float)((i * 2654435761u >> 7) % 1000) / 500.0f - 1.0f;

    struct model m = {.n_params = net.n_params,
                      .gradient = of_net,
                      .net = &net,
                      .inputs = inputs,
                      .labels = labels,
                      .start = calloc(net.n_params, sizeof(float))};
    assert_non_null(m.start);
    net_seed(&net, m.start, 5);
    check_slopes(&m);
    free(m.start);
    net_destroy(&net);
}

TEST(slopes_of_dense)
{
    check_net(build_dense);
}

TEST(slopes_of_convolutions)
{
    check_net(build_conv);
}

/* Convolutions and pools of one small image, one element after the other. */
static float exact_pixel(const struct net_layer *l, const float *params,
                         const float *image, size_t at)
{
    const size_t outs = l->out_height * l->out_width, o = at / outs;
    const ptrdiff_t y = (ptrdiff_t)(at % outs / l->out_width * l->stride);
    const ptrdiff_t x = (ptrdiff_t)(at % l->out_width * l->stride);
    const ptrdiff_t side = (ptrdiff_t)l->side, h = (ptrdiff_t)l->height,
                    w = (ptrdiff_t)l->width;
    const float *weight = params + l->first + o * l->channels * l->side * l->side;
    float sum = params[l->first + l->weights + o];

    for (size_t c = 0; c < l->channels; c++)
        for (ptrdiff_t k = 0; k < side * side; k++, weight++) {
            const ptrdiff_t iy = y + k / side - side / 2, ix = x + k % side - side / 2;

            if (iy >= 0 && ix >= 0 && iy < h && ix < w)
                sum += *weight * image[((ptrdiff_t)c * h + iy) * w + ix];
        }
    return sum > 0 ? sum : 0;
}

static float exact_pool(const struct net_layer *l, const float *in, size_t at)
{
    const size_t outs = l->out_height * l->out_width;
    const size_t corner =
        (at / outs * l->height + at % outs / l->out_width * 2) * l->width +
        at % l->out_width * 2;

    return fmaxf(fmaxf(in[corner], in[corner + 1]),
                 fmaxf(in[corner + l->width], in[corner + l->width + 1]));
}

static void check_convolution(size_t height, size_t width, size_t side, size_t stride)
{
    static float inputs[SIDE * SIDE];
    static const uint8_t labels[1] = {1};
    struct net net;

    net_begin(&net, 1, height, width);
    net_conv(&net, 2, side, stride, 1);
    net_conv(&net, 3, side, stride, 1);
    net_pool(&net);
    net_dense(&net, 4, 0);
    assert_int_equal(net_finish(&net, 1), 0);
    float *params = calloc(net.n_params, sizeof(float));
    assert_non_null(params);
    for (size_t i = 0; i < net.n_params; i++)
        params[i] = (float)((i * 2654435761u >> 7) % 1000) / 500.0f - 0.9f;
    for (size_t i = 0; i < height * width; i++)
        inputs[i] = (float)((i * 2246822519u >> 7) % 1000) / 500.0f - 1.0f;
    (void)net_correct(&net, params, inputs, labels, 1);
    for (int k = 0; k < 2; k++) {
        const struct net_layer *l = &net.layers[k];
        const float *image = k ? net.layers[0].outputs : inputs;

        for (size_t i = 0; i < l->out_channels * l->out_height * l->out_width; i++)
            assert_true(fabsf(l->outputs[i] - exact_pixel(l, params, image, i)) <
                        1e-4f);
    }
    const struct net_layer *pool = &net.layers[2];

    for (size_t i = 0; i < 3 * pool->out_height * pool->out_width; i++) {
        assert_true(pool->outputs[i] == exact_pool(pool, net.layers[1].outputs, i));
        assert_true(pool->outputs[i] == net.layers[1].outputs[pool->from[i]]);
    }
    free(params);
    net_destroy(&net);
}

/* Filters of other sides than the slopes have, at the edges of images of any shape, and
 * wider than the image. */
TEST(convolutions_are_exact)
{
    for (size_t side = 1; side <= 7; side += 2) {
        check_convolution(SIDE, SIDE, side, 1);
        check_convolution(5, 9, side, 1);
        check_convolution(9, 4, side, 1);
        check_convolution(2, 2, side, 1);
        check_convolution(9, 11, side, 2);
    }
}

TEST(slopes_of_strides_and_means)
{
    check_net(build_stride);
}

/* --- the LSTM --- */

static void of_lstm(const struct model *m, const float *params, float *gradient,
                    double *loss)
{
    lstm_forget(m->lstm);
    *loss = lstm_gradient(m->lstm, params, m->labels, gradient);
}

TEST(slopes_of_the_lstm)
{
    enum { SYMBOLS = 5, HIDDEN = 6, WINDOW = 7 };
    static uint8_t text[BATCH * (WINDOW + 1)];
    struct lstm lstm;

    assert_int_equal(lstm_create(&lstm, SYMBOLS, HIDDEN, BATCH, WINDOW), 0);
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (uint8_t)((i * 2654435761u >> 9) % SYMBOLS);

    struct model m = {.n_params = lstm.n_params,
                      .gradient = of_lstm,
                      .lstm = &lstm,
                      .labels = text,
                      .start = calloc(lstm.n_params, sizeof(float))};
    assert_non_null(m.start);
    lstm_seed(&lstm, m.start, 5);
    check_slopes(&m);
    free(m.start);
    lstm_destroy(&lstm);
}

/* These compute the LSTM's loss in double precision, by the C library's functions. */
static double exact_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double exact_sum(const float *w, const double *x, size_t n, float bias)
{
    double sum = (double)bias;

    for (size_t k = 0; k < n; k++)
        sum += (double)w[k] * x[k];
    return sum;
}

static double exact_loss(const struct lstm *l, const float *params, const uint8_t *text)
{
    enum { MOST = 16 };
    double cell[MOST] = {0}, state[MOST] = {0}, gate[4][MOST], out[MOST], loss = 0;
    const size_t h = l->hidden;

    for (size_t t = 0; t < l->window; t++) {
        double sum = 0;

        for (size_t i = 0; i < 4 * h; i++)
            gate[i / h][i % h] =
                exact_sum(params + l->wh + i * h, state, h,
                          params[l->b + i] + params[l->wx + text[t] * 4 * h + i]);
        for (size_t k = 0; k < h; k++) {
            cell[k] = exact_sigmoid(gate[1][k]) * cell[k] +
                      exact_sigmoid(gate[0][k]) * tanh(gate[2][k]);
            state[k] = exact_sigmoid(gate[3][k]) * tanh(cell[k]);
        }
        for (size_t v = 0; v < l->symbols; v++) {
            out[v] = exact_sum(params + l->wo + v * h, state, h, params[l->bo + v]);
            sum += exp(out[v]);
        }
        loss += log(sum) - out[text[t + 1]];
    }
    return loss / (double)l->window;
}

/* Exact also where gates are fully open or closed, beyond the range of a float's
 * exp. */
TEST(the_lstm_is_exact)
{
    enum { SYMBOLS = 5, HIDDEN = 9, WINDOW = 7 };
    const uint8_t text[WINDOW + 1] = {1, 4, 0, 2, 2, 3, 1, 0};
    struct lstm lstm;

    assert_int_equal(lstm_create(&lstm, SYMBOLS, HIDDEN, 1, WINDOW), 0);
    float *params = calloc(lstm.n_params, sizeof(float));
    assert_non_null(params);
    for (int wide = 1; wide <= 1000; wide *= 10) {
        lstm_seed(&lstm, params, 5);
        for (size_t i = 0; i < lstm.wo; i++)
            params[i] *= (float)wide;
        lstm_forget(&lstm);
        const double got = lstm_gradient(&lstm, params, text, NULL);
        assert_true(fabs(got - exact_loss(&lstm, params, text)) < 2e-6);
    }
    free(params);
    lstm_destroy(&lstm);
}

/* --- tasks with their data --- */

static struct task *make_task(const char *name, uint64_t seed)
{
    const struct task_desc desc = {.ranks = 3, .rank = 1, .batch = 4, .seed = seed};
    const struct task_row *row = task_named(name);
    struct task *task;
    struct trib_error err = {0};

    assert_non_null(row);
    if (task_create(row, &desc, &task, &err) != TRIB_OK)
        fail_msg("%s: %s", name, trib_error_text(&err));
    return task;
}

/* Parts cover the vector; and a seed gives the same gradient, another one another. */
TEST(seeds_decide)
{
    static const char *const names[] = {"mlp", "cnnall", "cnnwide", "logreg", "svm"};

    if (access(MNIST_FOLDER "/train-images-idx3-ubyte.gz", R_OK) != 0)
        skip();
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct task *tasks[3] = {make_task(names[i], 1), make_task(names[i], 1),
                                 make_task(names[i], 2)};
        const size_t n = tasks[0]->n_params;
        float *params = calloc(n, sizeof(float)), *gradients[3];
        size_t covered = 0;

        assert_non_null(params);
        for (size_t p = 0; p < tasks[0]->n_parts; p++)
            covered += tasks[0]->parts[p].count;
        assert_int_equal(covered, n);
        tasks[0]->ops->seed(tasks[0], params, 1);
        for (int t = 0; t < 3; t++) {
            gradients[t] = calloc(n, sizeof(float));
            assert_non_null(gradients[t]);
            assert_true(tasks[t]->ops->gradient(tasks[t], params, gradients[t], NULL,
                                                NULL) >= 0);
        }
        assert_memory_equal(gradients[0], gradients[1], n * sizeof(float));
        assert_memory_not_equal(gradients[0], gradients[2], n * sizeof(float));
        for (int t = 0; t < 3; t++) {
            free(gradients[t]);
            task_destroy(tasks[t]);
        }
        free(params);
    }
}

/* No sample is given to two ranks, and each rank's epoch has all of its samples. */
TEST(shares_are_dealt)
{
    enum { TOTAL = 100, RANKS = 3, EACH = TOTAL / RANKS };
    int taken[TOTAL] = {0};

    for (int r = 0; r < RANKS; r++) {
        struct shares shares;

        assert_int_equal(shares_create(&shares, TOTAL, r, RANKS, 9), 0);
        assert_int_equal(shares.count, EACH);
        for (size_t i = 0; i < EACH; i++)
            taken[shares_take(&shares, 1)[0]]++;
        shares_destroy(&shares);
    }
    for (int i = 0; i < TOTAL; i++)
        assert_true(taken[i] <= 1);
}

/* Numbers identify the same samples for every caller, in any order. Each pass has all
 * of them in its own order. */
TEST(samples_have_numbers)
{
    enum { TOTAL = 100 };
    int taken[TOTAL] = {0}, same = 0;
    struct shares first, second;

    assert_int_equal(shares_create(&first, TOTAL, 0, 1, 9), 0);
    assert_int_equal(shares_create(&second, TOTAL, 0, 1, 9), 0);
    for (uint64_t i = 0; i < TOTAL; i++) {
        const uint32_t pick = shares_at(&first, TOTAL + i);

        taken[pick]++;
        assert_int_equal(shares_at(&second, TOTAL + i), pick);
        same += shares_at(&second, i) == pick;
    }
    for (int i = 0; i < TOTAL; i++)
        assert_int_equal(taken[i], 1);
    assert_true(same < TOTAL / 4);
    shares_destroy(&first);
    shares_destroy(&second);
}

int main(void)
{
    openblas_set_num_threads(1);
    return tribtest_run();
}
