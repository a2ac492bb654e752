/* SPDX-License-Identifier: BSD-3-Clause */
/* Orthonormal columns, and PowerSGD's use of them and of matrix products. */
#include "tests/compress/kernels/isas.h"

#include "compress/models/orthonormal.h"
#include "tests/compress/vectors.h"

/* P^T P must be I, but 0 where a column is 0. */
static void check_gram(const float *x, size_t rows, size_t cols, const bool *zero)
{
    for (size_t a = 0; a < cols; a++) {
        for (size_t b = 0; b < cols; b++) {
            double sum = 0;
            for (size_t i = 0; i < rows; i++)
                sum += (double)x[i * cols + a] * (double)x[i * cols + b];
            const double expected = a == b && !(zero && zero[a]);
            assert_true(fabs(sum - expected) < 1e-6);
        }
    }
}

static float *normal_matrix(uint64_t seed, size_t rows, size_t cols)
{
    return vector_new(VECTOR_NORMAL, seed, rows * cols);
}

TEST(test_identity)
{
    static const size_t sizes[][2] = {{1, 1},    {5, 1},   {4, 4},
                                      {1000, 4}, {37, 16}, {513, 32}};
    for (int s = 0; s < 6; s++) {
        const size_t rows = sizes[s][0], cols = sizes[s][1];
        double *work = malloc(rows * cols * sizeof *work);
        float *x = normal_matrix(1, rows, cols), *y = normal_matrix(1, rows, cols);
        for (size_t i = 0; i < rows * cols; i++)
            x[i] = y[i] *= s % 2 ? 1e-30f : 1e30f;
        assert_int_equal(trib_orthonormalise(x, rows, cols, work), cols);
        check_gram(x, rows, cols, NULL);
        /* a column is one of the old ones, up to those before it */
        for (size_t a = 0; a < cols; a++) {
            double with_itself = 0, with_later = 0, size = 0;
            for (size_t i = 0; i < rows; i++) {
                const double v = (double)y[i * cols + a];
                size += v * v;
                with_itself += v * (double)x[i * cols + a];
                if (a + 1 < cols)
                    with_later += v * (double)x[i * cols + a + 1];
            }
            assert_true(with_itself > 0);
            assert_true(fabs(with_later) < 1e-5 * sqrt(size));
        }
        free(x), free(y), free(work);
    }
}

/* Each column is almost the previous one: it differs by 2^-17. An error in one
 * direction grows by 2^17 from column to column unless it is removed again. */
TEST(test_nearly_parallel)
{
    enum { ROWS = 300, COLS = 4 };
    static double work[ROWS * COLS];
    float *x = normal_matrix(2, ROWS, COLS);
    for (size_t i = 0; i < ROWS; i++) {
        float *row = x + i * COLS, before = row[0];
        for (size_t j = 1; j < COLS; j++) {
            const float sum = before + 0x1p-17f * row[j];
            row[j] = sum;
            before = 0x1p17f * (sum - before);
        }
    }
    assert_int_equal(trib_orthonormalise(x, ROWS, COLS, work), COLS);
    check_gram(x, ROWS, COLS, NULL);
    free(x);
}

TEST(test_deficient)
{
    enum { ROWS = 100, COLS = 8 };
    static double work[ROWS * COLS];
    float *x = normal_matrix(3, ROWS, COLS);
    for (size_t i = 0; i < ROWS; i++) {
        float *row = x + i * COLS;
        row[1] = 0;
        row[3] = 2 * row[0] - row[2];
        row[4] = i == 50 ? NAN : row[4];
        row[5] = i == 51 ? -INFINITY : row[5];
        row[6] =
            row[0] * 1e-40f; /* denormals: far from parallel by their rounding, or 0 */
    }
    const size_t rank = trib_orthonormalise(x, ROWS, COLS, work);
    const bool denormal_kept = rank == 4;
    const bool zero[COLS] = {false, true, false,          true,
                             true,  true, !denormal_kept, false};
    assert_true(rank == 3 || rank == 4);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < COLS; j++)
            assert_true(!zero[j] || x[i * COLS + j] == 0);
    check_gram(x, ROWS, COLS, zero);
    free(x);
}

TEST(test_more_columns_than_rows)
{
    double work[3 * 5];
    float *x = normal_matrix(4, 3, 5);
    const bool zero[5] = {false, false, false, true, true};
    assert_int_equal(trib_orthonormalise(x, 3, 5, work), 3);
    check_gram(x, 3, 5, zero);
    memset(x, 0, 15 * sizeof *x);
    assert_int_equal(trib_orthonormalise(x, 3, 5, work), 0);
    for (int i = 0; i < 15; i++)
        assert_true(x[i] == 0);
    assert_int_equal(trib_orthonormalise(x, 0, 5, work), 0);
    assert_int_equal(trib_orthonormalise(x, 3, 0, work), 0);
    free(x);
}

/* ---- a step of PowerSGD ---------------------------------------------------------- */

struct power {
    size_t a, b, r;
    float *p, *q, *out;
    double *work;
    void *scratch;
};

static struct power power_new(size_t a, size_t b, size_t r)
{
    struct power w = {.a = a, .b = b, .r = r};
    w.p = malloc(a * r * sizeof(float)), w.q = normal_matrix(77, b, r);
    w.out = malloc(a * b * sizeof(float)), w.work = malloc(a * r * sizeof(double));
    assert_int_equal(posix_memalign(&w.scratch, 64, TRIB_GEMM_SCRATCH), 0);
    return w;
}

static void power_free(struct power *w)
{
    free(w->p), free(w->q), free(w->out), free(w->work), free(w->scratch);
}

static void power_step(const struct trib_kernels *k, struct power *w, const float *m)
{
    struct trib_gemm g = {.m = w->a, .n = w->r, .k = w->b, .scratch = w->scratch};
    g.a = m, g.lda = w->b, g.b = w->q, g.ldb = w->r, g.c = w->p, g.ldc = w->r;
    k->gemm(&g); /* P = M Q */
    trib_orthonormalise(w->p, w->a, w->r, w->work);
    g.m = w->b, g.k = w->a, g.a_transposed = true;
    g.b = w->p, g.c = w->q;
    k->gemm(&g); /* Q = M^T P */
    g = (struct trib_gemm){.m = w->a, .n = w->b, .k = w->r, .scratch = w->scratch};
    g.a = w->p, g.lda = w->r, g.b = w->q, g.ldb = w->r, g.b_transposed = true;
    g.c = w->out, g.ldc = w->b;
    k->gemm(&g); /* P Q^T */
}

/* A matrix of rank r is exact after one step; a larger r adds only zeros. */
TEST(test_power_exact)
{
    enum { A = 61, B = 83, R = 3 };
    const struct trib_kernels *k = trib_kernels_get(NULL);
    float *left = normal_matrix(5, A, R), *right = normal_matrix(6, R, B);
    float *m = malloc(A * B * sizeof *m);
    for (size_t i = 0; i < A; i++) {
        for (size_t j = 0; j < B; j++) {
            double sum = 0;
            for (size_t q = 0; q < R; q++)
                sum += (double)left[i * R + q] * (double)right[q * B + j];
            m[i * B + j] = (float)sum;
        }
    }
    for (size_t r = R; r < R + 3; r++) {
        struct power w = power_new(A, B, r);
        power_step(k, &w, m);
        assert_true(square_distance(w.out, m, A * B) < 1e-10 * square_sum(m, A * B));
        memset(m, 0, r == R + 2 ? A * B * sizeof *m : 0);
        power_step(k, &w, m);
        assert_true(square_distance(w.out, m, A * B) <= 1e-10 * square_sum(m, A * B));
        power_free(&w);
    }
    free(left), free(right), free(m);
}

/* Steps with a warm start turn P to the largest singular vectors: the tangent of the
 * angle falls by (s2 / s1)^2 each. */
TEST(test_power_rate)
{
    enum { N = 64 };
    const struct trib_kernels *k = trib_kernels_get(NULL);
    struct power w = power_new(N, N, 1);
    float *m = calloc(N * N, sizeof *m);
    m[0] = 1;
    for (size_t i = 1; i < N; i++)
        m[i * N + i] = 0.8f; /* s2 / s1 = 0.8 */
    double before = 0;
    for (int step = 0; step < 12; step++) {
        double others = 0;
        power_step(k, &w, m);
        for (size_t i = 1; i < N; i++)
            others += (double)w.p[i] * (double)w.p[i];
        const double tangent = sqrt(others) / fabs((double)w.p[0]);
        assert_true(step == 0 || fabs(tangent / before / 0.64 - 1) < 1e-4);
        before = tangent;
    }
    free(m);
    power_free(&w);
}

/* Each instruction set gives the same P and Q: ranks with different processors
 * agree. */
TEST(test_power_same_bits)
{
    enum { A = 100, B = 70, R = 4 };
    const struct trib_kernels *isas[4];
    const int n = isas_of_cpu(isas);
    float *m = normal_matrix(8, A, B);
    struct power first = power_new(A, B, R);
    power_step(isas[0], &first, m);
    for (int i = 1; i < n; i++) {
        struct power w = power_new(A, B, R);
        power_step(isas[i], &w, m);
        assert_memory_equal(w.p, first.p, A * R * sizeof *w.p);
        assert_memory_equal(w.q, first.q, B * R * sizeof *w.q);
        assert_memory_equal(w.out, first.out, A * B * sizeof *w.out);
        power_free(&w);
    }
    power_free(&first);
    free(m);
}
