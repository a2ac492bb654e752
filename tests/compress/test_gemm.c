/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The product of matrices: against its definition, in every instruction set, for every way
 * that the operands can lie.
 *
 *     test_gemm --bench    GFLOP/s of the shapes that PowerSGD and GradiVeQ have, taken in turns with
 *                          OpenBLAS's, one thread
 */
#include <time.h>

#include "base/library.h"
#include "tests/compress/isas.h"

struct shape {
    size_t m, n, k;
};

/* A product whose operands, all of them, end at a page without access. */
struct product {
    struct trib_gemm g;
    struct guarded a, b, c, scratch;
    float *expected;
};

static size_t floats_of(size_t rows, size_t cols, size_t ld)
{
    return rows && cols ? (rows - 1) * ld + cols : 0;
}

/* bits of `how`: a and b transposed, add, longer rows, NaN and Inf among the elements */
static struct product product_new(struct shape s, unsigned how)
{
    struct product p = {{.m = s.m, .n = s.n, .k = s.k}, .expected = NULL};
    struct trib_gemm *g = &p.g;
    const size_t more = how & 8 ? 5 : 0;
    g->a_transposed = how & 1, g->b_transposed = how & 2, g->add = how & 4;
    g->lda = (g->a_transposed ? s.m : s.k) + more;
    g->ldb = (g->b_transposed ? s.k : s.n) + more;
    g->ldc = s.n + more;
    const size_t na =
        g->a_transposed ? floats_of(s.k, s.m, g->lda) : floats_of(s.m, s.k, g->lda);
    const size_t nb =
        g->b_transposed ? floats_of(s.n, s.k, g->ldb) : floats_of(s.k, s.n, g->ldb);
    const size_t nc = floats_of(s.m, s.n, g->ldc);
    p.a = guarded_new(na * sizeof(float)), p.b = guarded_new(nb * sizeof(float));
    p.c = guarded_new(nc * sizeof(float)), p.scratch = guarded_new(TRIB_GEMM_SCRATCH);
    float *a = p.a.p, *b = p.b.p, *c = p.c.p;
    for (size_t i = 0; i < na; i++)
        a[i] = odd_float(1, i, how & 16);
    for (size_t i = 0; i < nb; i++)
        b[i] = odd_float(2, i, how & 16);
    for (size_t i = 0; i < nc; i++)
        c[i] = odd_float(3, i, false);
    g->a = a, g->b = b, g->c = c, g->scratch = p.scratch.p;
    p.expected = malloc(nc * sizeof(float) + 4);
    memcpy(p.expected, c, nc * sizeof(float));
    return p;
}

static void product_free(struct product *p)
{
    guarded_free(&p->a), guarded_free(&p->b), guarded_free(&p->c),
        guarded_free(&p->scratch);
    free(p->expected);
}

static float a_at(const struct trib_gemm *g, size_t i, size_t p)
{
    return g->a_transposed ? g->a[p * g->lda + i] : g->a[i * g->lda + p];
}

static float b_at(const struct trib_gemm *g, size_t p, size_t j)
{
    return g->b_transposed ? g->b[j * g->ldb + p] : g->b[p * g->ldb + j];
}

static void check(const struct trib_kernels *k, struct shape s, unsigned how)
{
    struct product p = product_new(s, how);
    const struct trib_gemm *g = &p.g;
    for (size_t i = 0; i < s.m; i++) {
        for (size_t j = 0; j < s.n; j++) {
            float *e = &p.expected[i * g->ldc + j], sum = g->add ? *e : 0.0f;
            for (size_t q = 0; q < s.k; q++)
                sum = fmaf(a_at(g, i, q), b_at(g, q, j), sum);
            *e = sum;
        }
    }
    k->gemm(g);
    const size_t nc = floats_of(s.m, s.n, g->ldc); /* with what lies between the rows */
    const size_t at = first_difference(g->c, p.expected, nc);
    if (at != nc)
        fail_msg("%s: %zu x %zu x %zu, how %u: differs at %zu", k->isa, s.m, s.n, s.k,
                 how, at);
    product_free(&p);
}

static void check_all(struct shape s, unsigned how_step)
{
    const struct trib_kernels *isas[4];
    const int n = isas_of_cpu(isas);
    for (int i = 0; i < n; i++)
        for (unsigned how = 0; how < 32; how += how_step)
            check(isas[i], s, how);
}

static void test_small(void **state)
{
    (void)state;
    for (size_t m = 0; m < 7; m++)
        for (size_t n = 0; n < 7; n++)
            for (size_t k = 0; k < 7; k += 3)
                check_all((struct shape){m, n, k}, 1);
}

/* around tiles, vecs and packs of either instruction set */
static void test_edges(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {11, 31, 17}, {12, 32, 16},  {13, 33, 15}, {24, 16, 33}, {25, 15, 8},
        {33, 12, 20}, {100, 24, 31}, {40, 1, 70},  {1, 40, 70},  {70, 4, 16},
        {6, 16, 8},   {7, 17, 9},    {64, 64, 1},  {5, 100, 2},  {61, 27, 40},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_all(shapes[i], 1);
}

/* more terms and columns than are kept in a cache */
static void test_blocks(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {25, 330, 400}, {30, 40, 800}, {90, 3, 800},
        {3, 90, 800},   {50, 16, 390}, {14, 700, 7},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_all(shapes[i], 5);
}

/* ---- --bench ---------------------------------------------------------------------- */

struct openblas { /* CBLAS's: 101 is row-major, 111 no transpose, 112 transpose */
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
    void (*set_threads)(int n);
};

struct bench_shape {
    const char *name;
    struct shape s;
    bool a_transposed, b_transposed;
};

static const struct bench_shape bench_shapes[] = {
    {"powersgd P = M Q, rank 1", {1024, 1, 1024}, false, false},
    {"powersgd Q = M^T P, rank 1", {1024, 1, 1024}, true, false},
    {"powersgd P Q^T, rank 1", {1024, 1024, 1}, false, true},
    {"powersgd P = M Q, rank 4", {1024, 4, 1024}, false, false},
    {"powersgd Q = M^T P, rank 4", {1024, 4, 1024}, true, false},
    {"powersgd P Q^T, rank 4", {1024, 1024, 4}, false, true},
    {"gradiveq encode", {85, 96, 768}, false, false},
    {"gradiveq decode", {85, 768, 96}, false, true},
    {"gradiveq covariance", {768, 768, 128}, true, false},
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
        blas->sgemm(101, g->a_transposed ? 112 : 111, g->b_transposed ? 112 : 111, (int)g->m,
                    (int)g->n, (int)g->k, 1, g->a, (int)g->lda, g->b, (int)g->ldb, 0, g->c,
                    (int)g->ldc);
}

static void bench_shape(const struct openblas *blas, const struct bench_shape *b)
{
    enum { ROUNDS = 31, TIMES = 20 };
    const unsigned how = (b->a_transposed ? 1u : 0) | (b->b_transposed ? 2u : 0);
    struct product p = product_new(b->s, how);
    float *a = p.a.p, *x = p.b.p; /* no denormals */
    for (size_t i = 0; i < b->s.m * b->s.k; i++)
        a[i] = (float)(i * 37 % 101) - 50.0f;
    for (size_t i = 0; i < b->s.k * b->s.n; i++)
        x[i] = (float)(i * 41 % 103) - 51.0f;
    double took[2][ROUNDS];
    for (int round = 0; round < ROUNDS; round++)
        for (int who = 0; who < 2; who++) {
            const double begin = seconds();
            for (int i = 0; i < TIMES; i++)
                once(who ? NULL : trib_kernels_get(NULL), blas, &p.g);
            took[who][round] = (seconds() - begin) / TIMES;
        }
    for (int who = 0; who < 2; who++)
        qsort(took[who], ROUNDS, sizeof(double), by_value);
    const double flop = 2.0 * (double)b->s.m * (double)b->s.n * (double)b->s.k;
    const double ours = took[0][ROUNDS / 2], theirs = took[1][ROUNDS / 2];
    printf("%-28s %8.2f %8.2f %6.2f\n", b->name, flop / ours * 1e-9, flop / theirs * 1e-9,
           theirs / ours);
    product_free(&p);
}

static int bench(void)
{
    static const struct trib_symbol symbols[] = {
        {.name = "cblas_sgemm", .at = offsetof(struct openblas, sgemm)},
        {.name = "openblas_set_num_threads", .at = offsetof(struct openblas, set_threads)}};
    struct openblas blas;
    char why[200];
    if (!trib_library_open("libopenblas.so.0", symbols, 2, &blas, why, sizeof why)) {
        fprintf(stderr, "test_gemm: %s\n", why);
        return 1;
    }
    blas.set_threads(1);
    printf("%-28s %8s %8s %6s\n", "GFLOP/s, one thread", "ours", "OpenBLAS", "ratio");
    for (size_t i = 0; i < sizeof bench_shapes / sizeof *bench_shapes; i++)
        bench_shape(&blas, &bench_shapes[i]);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_blocks),
    };
    if (argc == 2 && strcmp(argv[1], "--bench") == 0)
        return bench();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
