/* SPDX-License-Identifier: BSD-3-Clause */
#include "examples/mlp.h"

#include <cblas.h>
#include <math.h>

#include "examples/draw.h"
#include "tests/harness/tribtest.h"

enum { IN = 7, HIDDEN = 6, OUT = 4, N_SAMPLES = 5 };

struct sample_set {
    float inputs[N_SAMPLES * IN];
    uint8_t labels[N_SAMPLES];
};

static const size_t small_widths[] = {IN, HIDDEN, HIDDEN, OUT};

static struct mlp_batch draw_samples(struct sample_set *set)
{
    uint64_t state = 42;

    for (size_t i = 0; i < N_SAMPLES * IN; i++)
        set->inputs[i] = 2.0f * draw_unit(&state) - 1.0f;
    for (size_t i = 0; i < N_SAMPLES; i++)
        set->labels[i] = (uint8_t)(draw_u64(&state) % OUT);
    return (struct mlp_batch){N_SAMPLES, set->inputs, set->labels};
}

static struct mlp *make_small(void)
{
    struct mlp *mlp;

    assert_int_equal(mlp_create(small_widths, 4, N_SAMPLES, &mlp), 0);
    mlp_seed(mlp, 7);
    return mlp;
}

static int ready_ignored(void *arg, size_t first, size_t count)
{
    (void)arg;
    (void)first;
    (void)count;
    return 0;
}

/* Central differences of the loss by every parameter. */
static void gradient_is_the_slope(void **state)
{
    struct sample_set set;
    struct mlp_batch batch = draw_samples(&set);
    struct mlp *mlp = make_small();
    float *gradient = calloc(mlp->n_params, sizeof(float));
    float *other = calloc(mlp->n_params, sizeof(float));
    const float h = 2e-3f; /* small: a ReLU may turn on between the two */
    double steepest = 0.0;

    (void)state;
    assert_non_null(gradient);
    assert_non_null(other);
    assert_true(mlp_gradient(mlp, &batch, gradient, ready_ignored, NULL) > 0.0);
    for (size_t i = 0; i < mlp->n_params; i++) {
        float kept = mlp->params[i];

        mlp->params[i] = kept + h;
        double above = mlp_gradient(mlp, &batch, other, ready_ignored, NULL);
        mlp->params[i] = kept - h;
        double below = mlp_gradient(mlp, &batch, other, ready_ignored, NULL);
        mlp->params[i] = kept;
        double slope = (above - below) / (2.0 * (double)h);

        steepest = fmax(steepest, fabs(slope));
        if (fabs(slope - (double)gradient[i]) > 2e-3)
            fail_msg("parameter %zu: gradient %g, slope %g", i, (double)gradient[i],
                     slope);
    }
    assert_true(steepest > 0.05);
    free(other);
    free(gradient);
    mlp_destroy(mlp);
}

struct coverage {
    size_t end; /* everything from here on was reported */
    int pieces;
    int stop_after;
};

static int ready_backwards(void *arg, size_t first, size_t count)
{
    struct coverage *seen = arg;

    assert_true(count > 0);
    assert_int_equal(first + count, seen->end);
    seen->end = first;
    return ++seen->pieces == seen->stop_after;
}

/* gradient[row][column] of the first layer is the sum of delta * input over samples. */
static void check_first_layer(const struct mlp *mlp, const struct mlp_batch *batch,
                              const float *gradient)
{
    const struct mlp_layer *layer = &mlp->layers[0];

    for (size_t i = 0; i < layer->out * layer->in; i++) {
        float want = 0.0f;

        for (size_t s = 0; s < batch->count; s++)
            want += layer->deltas[s * layer->out + i / layer->in] *
                    batch->inputs[s * layer->in + i % layer->in];
        assert_true(fabsf(gradient[i] - want) < 1e-5f);
    }
}

static void pieces_cover_the_vector_backwards(void **state)
{
    static const size_t widths[] = {784, 512, 256, 10};
    static float inputs[2 * 784];
    const uint8_t labels[2] = {3, 9};
    struct mlp_batch batch = {2, inputs, labels};
    struct mlp *mlp;

    (void)state;
    for (size_t i = 0; i < 2 * 784; i++)
        inputs[i] = (float)(i % 13) - 6.0f;
    assert_int_equal(mlp_create(widths, 4, 2, &mlp), 0);
    assert_int_equal(mlp->n_params, 784 * 512 + 512 + 512 * 256 + 256 + 256 * 10 + 10);
    mlp_seed(mlp, 1);

    float *gradient = calloc(mlp->n_params, sizeof(float));
    struct coverage seen = {mlp->n_params, 0, 0};

    assert_non_null(gradient);
    assert_true(mlp_gradient(mlp, &batch, gradient, ready_backwards, &seen) > 0.0);
    assert_int_equal(seen.end, 0);
    assert_true(seen.pieces > 8);
    check_first_layer(mlp, &batch, gradient);
    seen = (struct coverage){mlp->n_params, 0, 3};
    assert_true(mlp_gradient(mlp, &batch, gradient, ready_backwards, &seen) < 0.0);
    assert_int_equal(seen.pieces, 3);
    free(gradient);
    mlp_destroy(mlp);
}

static void descent_learns_the_samples(void **state)
{
    struct sample_set set;
    struct mlp_batch batch = draw_samples(&set);
    struct mlp *mlp = make_small();
    float *gradient = calloc(mlp->n_params, sizeof(float));
    double loss = 0.0;

    (void)state;
    assert_non_null(gradient);
    for (int step = 0; step < 300; step++) {
        loss = mlp_gradient(mlp, &batch, gradient, ready_ignored, NULL);
        mlp_update(mlp, gradient, 0.1f, 0.9f);
    }
    assert_true(loss < 0.01);
    assert_int_equal(mlp_correct(mlp, &batch), N_SAMPLES);
    free(gradient);
    mlp_destroy(mlp);
}

static void update_has_momentum(void **state)
{
    struct mlp *mlp = make_small();
    float *ones = calloc(mlp->n_params, sizeof(float));
    float first = mlp->params[0];

    (void)state;
    assert_non_null(ones);
    for (size_t i = 0; i < mlp->n_params; i++)
        ones[i] = 1.0f;
    mlp_update(mlp, ones, 0.1f, 0.5f); /* velocity 1 */
    mlp_update(mlp, ones, 0.1f, 0.5f); /* velocity 1.5 */
    assert_true(fabsf(mlp->params[0] - (first - 0.25f)) < 1e-6f);
    free(ones);
    mlp_destroy(mlp);
}

static void same_seed_same_bits(void **state)
{
    struct mlp *one = make_small();
    struct mlp *two = make_small();

    (void)state;
    assert_memory_equal(one->params, two->params, one->n_params * sizeof(float));
    mlp_seed(two, 8);
    assert_memory_not_equal(one->params, two->params, one->n_params * sizeof(float));
    mlp_destroy(one);
    mlp_destroy(two);
}

static void shuffle_permutes(void **state)
{
    uint32_t items[100];
    uint64_t seen[2] = {0, 0};
    int moved = 0;

    (void)state;
    for (uint32_t i = 0; i < 100; i++)
        items[i] = i;
    draw_shuffle(items, 100, 5);
    for (uint32_t i = 0; i < 100; i++) {
        assert_true(items[i] < 100);
        seen[items[i] / 64] |= UINT64_C(1) << items[i] % 64;
        moved += items[i] != i;
    }
    assert_true(seen[0] == UINT64_MAX && seen[1] == (UINT64_C(1) << 36) - 1);
    assert_true(moved > 80);
    draw_shuffle(items, 0, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradient_is_the_slope),
        cmocka_unit_test(pieces_cover_the_vector_backwards),
        cmocka_unit_test(descent_learns_the_samples),
        cmocka_unit_test(update_has_momentum),
        cmocka_unit_test(same_seed_same_bits),
        cmocka_unit_test(shuffle_permutes),
    };

    tribtest_deadline(180);
    openblas_set_num_threads(1);
    return cmocka_run_group_tests_name("mlp", tests, NULL, NULL);
}
