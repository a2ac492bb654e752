/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exponential dithering: dither of bases other than 2.
 */
#include "tests/compress/quantise/bucket_checks.h"

static const struct {
    double base;
    int bits;
} rows[] = {{1.1, 4}, {1.1, 8}, {1.5, 2}, {1.5, 4}, {1.5, 5},
            {1.5, 8}, {3, 3},   {4, 3},   {4, 6},   {16, 5}};
enum { ROWS = sizeof rows / sizeof *rows };

static int highest_of(int row)
{
    return (1 << (rows[row].bits - 1)) - 1;
}

/* norm=max: every value is one of the two levels around it, times the norm; the largest
 * stays */
TEST(test_levels)
{
    enum { N = 3000, BUCKET = 128 };
    for (int r = 0; r < ROWS; r++) {
        const double b = rows[r].base, lowest = pow(b, 1 - highest_of(r));
        char text[64];
        snprintf(text, sizeof text, "dither:base=%g,bits=%d,bucket=128", b,
                 rows[r].bits);
        struct codec_buffers c = buffers_new(text, NULL, N);
        float *x = vector_new(VECTOR_NORMAL, 5, N), *y = malloc(N * sizeof *y);
        for (int i = 0; i < N; i++)
            x[i] *= ldexpf(1.0f, -(i % 7 * (i % 5)));
        encode(&c, x, TRIB_ENCODE_CONTRIBUTION, 3);
        decode(&c, y);
        for (int first = 0; first < N; first += BUCKET) {
            const int n = first + BUCKET < N ? BUCKET : N - first;
            double norm = 0;
            for (int i = first; i < first + n; i++)
                norm = fmax(norm, fabs((double)x[i]));
            for (int i = first; i < first + n; i++) {
                const double from = fabs((double)x[i]) / norm,
                             to = fabs((double)y[i]) / norm;
                const double k = to > 0 ? log(to) / log(b) : 0;
                assert_true(fabs(k - round(k)) < 1e-4 && k < 0.5);
                assert_true(to == 0 || to >= lowest * (1 - 1e-6));
                assert_true(from < lowest || (to > from / b * (1 - 1e-6)));
                assert_true(to <= fmax(from * b, lowest) * (1 + 1e-6));
                assert_true(from < 1 || y[i] == x[i]);
                assert_true(y[i] == 0 || signbit(x[i]) == signbit(y[i]));
            }
        }
        free(x), free(y);
        buffers_free(&c);
    }
}

/* E|C(x) - x|^2 <= w |x|^2, w = (b + 1/b - 2) / 4 + q min(1, q), q = sqrt(bucket)
 * b^(1-s) */
TEST(test_variance)
{
    static const char *const norms[] = {"l2", "max"};
    for (int t = 0; t < 2 * ROWS; t++) {
        const int r = t / 2;
        const double base = rows[r].base,
                     q = sqrt(512.0) * pow(base, 1 - highest_of(r));
        char text[64];
        snprintf(text, sizeof text, "dither:base=%g,bits=%d,norm=%s", base,
                 rows[r].bits, norms[t % 2]);
        check_variance(text, (base + 1 / base - 2) / 4 + q * fmin(1, q));
    }
}

/* The bound is reached: half of the bucket has the worst position between two
 * levels. */
TEST(test_worst_place)
{
    enum { N = 512, DRAWS = 2000 };
    float x[N], y[N];
    double error = 0;
    struct codec_buffers b = buffers_new("dither:base=4,bits=4", NULL, N);
    x[0] = 1;
    for (int i = 1; i < N; i++)
        x[i] = 0.4f; /* 2 b / (1 + b) times the lower one */
    for (uint32_t draw = 0; draw < DRAWS; draw++) {
        encode(&b, x, TRIB_ENCODE_CONTRIBUTION, draw);
        decode(&b, y);
        error += square_distance(x, y, N) / DRAWS;
    }
    error /= square_sum(x, N) - 1;
    assert_true(fabs(error - 2.25 / 4) < 0.01);
    buffers_free(&b);
}

/* Exactly at a level, and one float32 step above and below it. */
TEST(test_at_levels)
{
    enum { N = 16 };
    for (int r = 0; r < ROWS; r++) {
        char text[64];
        snprintf(text, sizeof text, "dither:base=%g,bits=%d", rows[r].base,
                 rows[r].bits);
        struct codec_buffers b = buffers_new(text, NULL, N);
        double level = 1;
        for (int k = 0; k < highest_of(r); k++, level /= rows[r].base) {
            const float at = (float)level;
            float x[N] = {1.0f, at, nextafterf(at, 0), nextafterf(at, 2)}, y[N];
            x[3] = x[3] > 1 ? 1.0f : x[3];
            for (uint32_t draw = 0; draw < 8; draw++) {
                encode(&b, x, TRIB_ENCODE_CONTRIBUTION, draw);
                decode(&b, y);
                assert_true(y[1] == at);
                assert_true(y[2] <= at && y[3] >= at);
            }
        }
        buffers_free(&b);
    }
}

TEST(test_not_finite)
{
    enum { N = 1536 };
    float y[N];
    struct codec_buffers b = buffers_new("dither:base=1.5", NULL, N);
    float *x = vector_new(VECTOR_NORMAL, 5, N);
    x[600] = INFINITY;
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&b, y);
    for (int i = 0; i < N; i++)
        assert_int_equal(isnan(y[i]) != 0, i / 512 == 1);
    x[600] = FLT_MAX;
    encode(&b, x, TRIB_ENCODE_CONTRIBUTION, 0);
    decode(&b, y);
    assert_true(y[600] == FLT_MAX);
    free(x);
    buffers_free(&b);
}
