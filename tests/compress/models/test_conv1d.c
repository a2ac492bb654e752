/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Convolution layers: forward against the sums of the header, backward against finite
 * differences, both in every instruction set.
 */
#include "tests/compress/kernels/isas.h"

#include "compress/models/conv1d.h"
#include "tests/compress/vectors.h"

/* A layer with all that it needs; every buffer ends at a page without access. */
struct bench {
    struct trib_layer_run r;
    size_t n_x, n_y, n_w;
    struct guarded x, y, w, columns, scratch;
};

static struct bench bench_new(const struct trib_layer *l, size_t length,
                              const struct trib_kernels *k)
{
    struct bench b = {.n_x = l->in * length, .n_w = trib_layer_weights(l)};
    b.n_y = l->out * trib_layer_length(l, length);
    b.x = guarded_new(b.n_x * sizeof(float)), b.y = guarded_new(b.n_y * sizeof(float));
    b.w = guarded_new(b.n_w * sizeof(float));
    b.columns = guarded_new(trib_layer_columns(l, length) * sizeof(float));
    b.scratch = guarded_new(TRIB_GEMM_SCRATCH);
    for (size_t i = 0; i < b.n_x; i++)
        ((float *)b.x.p)[i] = normal_at(1, i);
    for (size_t i = 0; i < b.n_w; i++)
        ((float *)b.w.p)[i] = normal_at(2, i);
    b.r = (struct trib_layer_run){.layer = l,
                                  .kernels = k,
                                  .weights = b.w.p,
                                  .x = b.x.p,
                                  .length = length,
                                  .y = b.y.p,
                                  .columns = b.columns.p,
                                  .scratch = b.scratch.p};
    return b;
}

static void bench_free(struct bench *b)
{
    guarded_free(&b->x), guarded_free(&b->y), guarded_free(&b->w);
    guarded_free(&b->columns), guarded_free(&b->scratch);
}

static const struct trib_layer layers[] = {
    {false, 1, 6, 3, 2, 0.01f}, {false, 5, 4, 3, 2, 0.25f}, {false, 7, 2, 1, 1, 1.0f},
    {true, 4, 5, 3, 2, 0.01f},  {true, 3, 1, 3, 2, 1.0f},   {false, 2, 3, 4, 3, 0.5f},
    {true, 2, 3, 2, 3, 0.5f},
};
enum { LAYERS = sizeof layers / sizeof *layers, LENGTHS = 4 };
static const size_t lengths[LENGTHS] = {4, 5, 24, 37};

static void for_each_layer(void (*check)(const struct trib_layer *l, size_t length))
{
    for (int i = 0; i < LAYERS; i++)
        for (int j = 0; j < LENGTHS; j++)
            check(&layers[i], lengths[j]);
}

static double sum_at(const struct bench *b, size_t o, size_t at)
{
    const struct trib_layer *l = b->r.layer;
    const float *w = b->r.weights, *x = b->r.x;
    const size_t n = b->r.length;
    double sum = (double)w[l->in * l->out * l->taps + o];
    for (size_t c = 0; c < l->in; c++) {
        for (size_t t = 0; t < l->taps; t++) {
            if (!l->transposed)
                sum += (double)w[(o * l->in + c) * l->taps + t] *
                       (double)x[c * n + l->stride * at + t];
            else if (at >= t && (at - t) % l->stride == 0 && (at - t) / l->stride < n)
                sum += (double)w[(c * l->out + o) * l->taps + t] *
                       (double)x[c * n + (at - t) / l->stride];
        }
    }
    return sum > 0 ? sum : (double)l->slope * sum;
}

static void check_forward(const struct trib_layer *l, size_t length)
{
    struct bench b = bench_new(l, length, trib_kernels_get("c"));
    const size_t n = trib_layer_length(l, length);
    trib_layer_forward(&b.r);
    for (size_t o = 0; o < l->out; o++)
        for (size_t i = 0; i < n; i++)
            assert_true(fabs(sum_at(&b, o, i) - (double)b.r.y[o * n + i]) < 1e-5);
    bench_free(&b);
}

TEST(test_forward)
{
    for_each_layer(check_forward);
}

TEST(test_lengths)
{
    const struct trib_layer down = {false, 1, 1, 3, 2, 1}, up = {true, 1, 1, 3, 2, 1};
    assert_int_equal(trib_layer_length(&down, 2), 0);
    assert_int_equal(trib_layer_length(&down, 3), 1);
    assert_int_equal(trib_layer_length(&down, 4), 1);
    assert_int_equal(trib_layer_length(&down, 5), 2);
    assert_int_equal(trib_layer_length(&up, 0), 0);
    assert_int_equal(trib_layer_length(&up, 1), 3);
    assert_int_equal(trib_layer_length(&up, 2), 5);
}

/* Return a loss: the layer's output with random weights. */
static double loss_of(const struct bench *b)
{
    double sum = 0;
    trib_layer_forward(&b->r);
    for (size_t i = 0; i < b->n_y; i++)
        sum += (double)normal_at(3, i) * (double)b->r.y[i];
    return sum;
}

/* The derivative in p, from both sides; steps are small, lest f bends between them. */
static double slope_of(const struct bench *b, float *p)
{
    const float here = *p, step = 0x1p-8f;
    *p = here + step;
    const double above = loss_of(b);
    *p = here - step;
    const double below = loss_of(b);
    *p = here;
    return (above - below) / (2 * (double)step);
}

static void check_slopes(const struct bench *b, float *p, const float *found, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const double expected = slope_of(b, p + i);
        if (fabs(expected - (double)found[i]) > 2e-3 * (1 + fabs(expected)))
            fail_msg("derivative %zu of %zu: %g, by differences %g", i, n,
                     (double)found[i], expected);
    }
}

/* At a bend of f the difference of the two sides is no derivative: inputs are kept
 * away. */
static void keep_off_the_bend(struct bench *b)
{
    float *bias = (float *)b->w.p + b->n_w - b->r.layer->out;
    for (size_t o = 0; o < b->r.layer->out; o++) {
        for (int trial = 0; trial < 1000; trial++) {
            const size_t n = b->n_y / b->r.layer->out;
            float nearest = INFINITY;
            trib_layer_forward(&b->r);
            for (size_t i = 0; i < n; i++)
                nearest =
                    fminf(nearest, fabsf(b->r.y[o * n + i]) /
                                       (b->r.y[o * n + i] > 0 ? 1 : b->r.layer->slope));
            if (nearest > 0x1p-6f)
                break;
            bias[o] += 0.0371f;
        }
    }
}

static void check_gradients(const struct trib_layer *l, size_t length)
{
    struct bench b = bench_new(l, length, trib_kernels_get(NULL));
    float *dy = malloc(b.n_y * sizeof *dy), *dx = malloc(b.n_x * sizeof *dx);
    float *dw = malloc(b.n_w * sizeof *dw);
    if (l->slope != 1)
        keep_off_the_bend(&b);
    trib_layer_forward(&b.r);
    for (size_t i = 0; i < b.n_y; i++)
        dy[i] = normal_at(3, i);
    for (size_t i = 0; i < b.n_w; i++)
        dw[i] = 5; /* backward adds to dw */
    trib_layer_backward(&b.r, dy, dx, dw);
    for (size_t i = 0; i < b.n_w; i++)
        dw[i] -= 5;
    check_slopes(&b, b.x.p, dx, b.n_x);
    check_slopes(&b, b.w.p, dw, b.n_w);
    free(dy), free(dx), free(dw);
    bench_free(&b);
}

TEST(test_gradients)
{
    for_each_layer(check_gradients);
}

static void check_same_bits(const struct trib_layer *l, size_t length)
{
    const struct trib_kernels *isas[4];
    const int n_isas = isas_of_cpu(isas);
    struct bench first = bench_new(l, length, isas[0]);
    float *d[4][3];
    for (int i = 0; i < n_isas; i++) {
        struct bench b = bench_new(l, length, isas[i]);
        d[i][0] = vector_new(VECTOR_NORMAL, 3, b.n_y), d[i][1] = calloc(b.n_x, 4);
        d[i][2] = calloc(b.n_w, 4);
        trib_layer_forward(&b.r);
        trib_layer_backward(&b.r, d[i][0], d[i][1], d[i][2]);
        if (i == 0)
            memcpy(first.y.p, b.y.p, b.n_y * 4);
        assert_memory_equal(b.y.p, first.y.p, b.n_y * 4);
        assert_memory_equal(d[i][1], d[0][1], b.n_x * 4);
        assert_memory_equal(d[i][2], d[0][2], b.n_w * 4);
        bench_free(&b);
    }
    for (int i = 0; i < n_isas; i++)
        free(d[i][0]), free(d[i][1]), free(d[i][2]);
    bench_free(&first);
}

TEST(test_same_bits)
{
    for_each_layer(check_same_bits);
}

/* Constants and straight lines stay; backward is the transpose of forward. */
TEST(test_resize)
{
    static const size_t sizes[][2] = {{1, 1},    {1, 7},    {10, 10},
                                      {95, 100}, {100, 95}, {3, 40}};
    for (int s = 0; s < 6; s++) {
        const size_t from = sizes[s][0], to = sizes[s][1];
        float *x = vector_new(VECTOR_NORMAL, 1, from), *y = malloc(to * sizeof *y);
        float *dy = vector_new(VECTOR_NORMAL, 2, to), *dx = malloc(from * sizeof *dx);
        trib_resize_forward(x, from, y, to);
        trib_resize_backward(dx, from, dy, to);
        double a = 0, b = 0;
        for (size_t i = 0; i < to; i++)
            a += (double)y[i] * (double)dy[i];
        for (size_t i = 0; i < from; i++)
            b += (double)x[i] * (double)dx[i];
        assert_true(fabs(a - b) < 1e-5);
        for (size_t i = 0; i < to && from == to; i++)
            assert_true(y[i] == x[i]);
        for (size_t i = 0; i < from; i++)
            x[i] = 3 + (float)i;
        trib_resize_forward(x, from, y, to);
        for (size_t i = 0; i < to; i++) {
            const double at = ((double)i + 0.5) * (double)from / (double)to - 0.5;
            const double within = fmin(fmax(at, 0), (double)from - 1);
            assert_true(fabs((double)y[i] - 3 - within) < 1e-4);
        }
        free(x), free(y), free(dx), free(dy);
    }
}
