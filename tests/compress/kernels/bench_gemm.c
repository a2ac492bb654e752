/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GFLOP/s of the product of matrices, of the shapes that PowerSGD and GradiVeQ have,
 * taken in turns with OpenBLAS's. No test: to be run by hand.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/library.h"
#include "compress/kernels/kernels.h"

struct openblas { /* CBLAS's: 101 is row-major, 111 no transpose, 112 transpose */
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta,
                  float *c, int ldc);
    void (*set_threads)(int n);
};

struct shape {
    const char *name;
    size_t m, n, k;
    bool a_transposed, b_transposed;
};

static const struct shape shapes[] = {
    {"powersgd P = M Q, rank 1", 1024, 1, 1024, false, false},
    {"powersgd Q = M^T P, rank 1", 1024, 1, 1024, true, false},
    {"powersgd P Q^T, rank 1", 1024, 1024, 1, false, true},
    {"powersgd P = M Q, rank 4", 1024, 4, 1024, false, false},
    {"powersgd Q = M^T P, rank 4", 1024, 4, 1024, true, false},
    {"powersgd P Q^T, rank 4", 1024, 1024, 4, false, true},
    {"gradiveq encode", 85, 96, 768, false, false},
    {"gradiveq decode", 85, 768, 96, false, true},
    {"gradiveq covariance", 768, 768, 128, true, false},
};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void once(const struct trib_kernels *k, const struct openblas *blas,
                 const struct trib_gemm *g)
{
    if (k)
        k->gemm(g);
    else
        blas->sgemm(101, g->a_transposed ? 112 : 111, g->b_transposed ? 112 : 111,
                    (int)g->m, (int)g->n, (int)g->k, 1, g->a, (int)g->lda, g->b,
                    (int)g->ldb, 0, g->c, (int)g->ldc);
}

static float *floats_new(size_t n, size_t factor)
{
    float *x = malloc(n * sizeof *x);
    if (!x)
        exit(1);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(i * factor % 101) - 50.0f;
    return x;
}

static double median(double *took, size_t n)
{
    qsort(took, n, sizeof *took, by_value);
    return took[n / 2];
}

static void bench(const struct openblas *blas, const struct shape *s)
{
    enum { ROUNDS = 31, TIMES = 20 };
    const struct trib_kernels *kernels = trib_kernels_get(NULL);
    float *a = floats_new(s->m * s->k, 37), *b = floats_new(s->k * s->n, 41);
    float *c = floats_new(s->m * s->n, 1);
    void *scratch = aligned_alloc(64, TRIB_GEMM_SCRATCH);
    const struct trib_gemm g = {.m = s->m, .n = s->n, .k = s->k, .a = a, .b = b, .c = c,
                                .lda = s->a_transposed ? s->m : s->k,
                                .ldb = s->b_transposed ? s->k : s->n, .ldc = s->n,
                                .a_transposed = s->a_transposed,
                                .b_transposed = s->b_transposed, .scratch = scratch};
    double took[2][ROUNDS];
    for (int round = 0; round < ROUNDS; round++)
        for (int who = 0; who < 2; who++) {
            const double begin = seconds();
            for (int i = 0; i < TIMES; i++)
                once(who ? NULL : kernels, blas, &g);
            took[who][round] = (seconds() - begin) / TIMES;
        }
    const double flop = 2.0 * (double)s->m * (double)s->n * (double)s->k;
    const double ours = median(took[0], ROUNDS), theirs = median(took[1], ROUNDS);
    printf("%-28s %8.2f %8.2f %6.2f\n", s->name, flop / ours * 1e-9,
           flop / theirs * 1e-9, theirs / ours);
    free(a), free(b), free(c), free(scratch);
}

int main(void)
{
    static const struct trib_symbol symbols[] = {
        {.name = "cblas_sgemm", .at = offsetof(struct openblas, sgemm)},
        {.name = "openblas_set_num_threads",
         .at = offsetof(struct openblas, set_threads)}};
    struct openblas blas;
    char why[200];
    if (!trib_library_open("libopenblas.so.0", symbols, 2, &blas, why, sizeof why)) {
        fprintf(stderr, "bench_gemm: %s\n", why);
        return 1;
    }
    blas.set_threads(1);
    printf("%-28s %8s %8s %6s\n", "GFLOP/s, one thread", "ours", "OpenBLAS", "ratio");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        bench(&blas, &shapes[i]);
    return 0;
}
