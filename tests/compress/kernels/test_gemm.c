/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The matrix product compared with its definition, in every instruction set, for every
 * layout of the operands.
 */
#include "tests/compress/kernels/isas.h"

struct shape {
    size_t m, n, k;
};

/* A product whose operands, all of them, end at a page without access. */
struct product {
    struct trib_gemm g;
    struct guarded a, b, c, scratch;
    float *before; /* elements of c */
    float *expected;
};

static size_t floats_of(size_t rows, size_t cols, size_t ld)
{
    return rows && cols ? (rows - 1) * ld + cols : 0;
}

/* bits of `how`: a and b transposed, add, longer rows, NaN and Inf among the
 * elements */
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
    p.before = malloc(nc * sizeof(float) + 4);
    memcpy(p.before, c, nc * sizeof(float));
    p.expected = malloc(nc * sizeof(float) + 4);
    memcpy(p.expected, c, nc * sizeof(float));
    return p;
}

static void product_free(struct product *p)
{
    guarded_free(&p->a), guarded_free(&p->b), guarded_free(&p->c),
        guarded_free(&p->scratch);
    free(p->before), free(p->expected);
}

static float a_at(const struct trib_gemm *g, size_t i, size_t p)
{
    return g->a_transposed ? g->a[p * g->lda + i] : g->a[i * g->lda + p];
}

static float b_at(const struct trib_gemm *g, size_t p, size_t j)
{
    return g->b_transposed ? g->b[j * g->ldb + p] : g->b[p * g->ldb + j];
}

/* The product by its definition. */
static void expect(struct product *p)
{
    const struct trib_gemm *g = &p->g;

    for (size_t i = 0; i < g->m; i++) {
        for (size_t j = 0; j < g->n; j++) {
            float *e = &p->expected[i * g->ldc + j], sum = g->add ? *e : 0.0f;
            for (size_t q = 0; q < g->k; q++)
                sum = fmaf(a_at(g, i, q), b_at(g, q, j), sum);
            *e = sum;
        }
    }
}

/* The same operands for all instruction sets. */
static void check(struct shape s, unsigned how)
{
    struct product p = product_new(s, how);
    const struct trib_gemm *g = &p.g;
    const size_t nc = floats_of(s.m, s.n, g->ldc); /* with the gaps between the rows */
    const struct trib_kernels *isas[4];
    const int n = isas_of_cpu(isas);

    expect(&p);
    for (int i = 0; i < n; i++) {
        memcpy(g->c, p.before, nc * sizeof(float));
        isas[i]->gemm(g);
        const size_t at = first_difference(g->c, p.expected, nc);
        if (at != nc)
            fail_msg("%s: %zu x %zu x %zu, how %u: differs at %zu", isas[i]->isa, s.m,
                     s.n, s.k, how, at);
    }
    product_free(&p);
}

static void check_all(struct shape s, unsigned how_step)
{
    for (unsigned how = 0; how < 32; how += how_step)
        check(s, how);
}

TEST(test_small)
{
    for (size_t m = 0; m < 7; m++)
        for (size_t n = 0; n < 7; n++)
            for (size_t k = 0; k < 7; k += 3)
                check_all((struct shape){m, n, k}, 1);
}

/* around tiles, vecs and packs of either instruction set */
TEST(test_edges)
{
    static const struct shape shapes[] = {
        {11, 31, 17}, {12, 32, 16},  {13, 33, 15}, {24, 16, 33}, {25, 15, 8},
        {33, 12, 20}, {100, 24, 31}, {40, 1, 70},  {1, 40, 70},  {70, 4, 16},
        {6, 16, 8},   {7, 17, 9},    {64, 64, 1},  {5, 100, 2},  {61, 27, 40},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_all(shapes[i], 1);
}

/* more terms and columns than are kept in a cache */
TEST(test_blocks)
{
    static const struct shape shapes[] = {
        {25, 330, 400}, {30, 40, 800}, {90, 3, 800},
        {3, 90, 800},   {50, 16, 390}, {14, 700, 7},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_all(shapes[i], 5);
}

/* few rows, and columns that are read term by term */
TEST(test_sweeps)
{
    check_all((struct shape){300, 4, 260}, 1);
    check_all((struct shape){20, 330, 210}, 1);
    check_all((struct shape){14, 900, 3}, 1);
}

/* Rows and their few factors, which begin `more` elements apart. */
static void check_factors(const struct trib_kernels *k, struct trib_factors f, bool add,
                          bool special)
{
    enum { M, X, OUT, OPERANDS };
    const struct trib_kernels *c = trib_kernels_get("c");
    const size_t n = f.rows * f.cols, nf = floats_of(f.rank, f.cols, f.ld),
                 n_out = f.rows * f.rank;
    const size_t counts[OPERANDS] = {n, n, n_out};
    struct guarded q = guarded_new(nf * sizeof(float)), at[2][OPERANDS];
    float *factors = q.p, *v[2][OPERANDS];

    for (size_t i = 0; i < nf; i++)
        factors[i] = odd_float(4, i, special);
    for (int u = 0; u < 2 * OPERANDS; u++) {
        const int o = u % OPERANDS;
        at[u / OPERANDS][o] = guarded_new(counts[o] * sizeof(float));
        v[u / OPERANDS][o] = at[u / OPERANDS][o].p;
        for (size_t i = 0; i < counts[o]; i++)
            v[u / OPERANDS][o][i] = odd_float(5 + (uint64_t)o, i, special);
    }
    f.factors = factors;
    for (int u = 0; u < 2; u++) {
        (u ? k : c)->project_rows(v[u][M], add ? v[u][X] : NULL, &f, v[u][OUT]);
        (u ? k : c)->take_rows(v[u][X], &f, v[u][OUT]);
    }
    for (int o = 0; o < OPERANDS; o++)
        if (first_difference(v[0][o], v[1][o], counts[o]) != counts[o])
            fail_msg("%s: %zu rows of %zu, rank %zu: operand %d differs", k->isa,
                     f.rows, f.cols, f.rank, o);
    for (int u = 0; u < 2 * OPERANDS; u++)
        guarded_free(&at[u / OPERANDS][u % OPERANDS]);
    guarded_free(&q);
}

TEST(test_factors)
{
    const struct trib_kernels *isas[4];
    const int n = isas_of_cpu(isas);

    for (int i = 0; i < n; i++)
        for (size_t cols = 1; cols < 70; cols += cols < 20 ? 1 : 7)
            for (size_t rank = 1; rank < 10; rank++)
                for (unsigned how = 0; how < 8; how++)
                    check_factors(isas[i],
                                  (struct trib_factors){.ld = cols + (how & 1) * 3,
                                                        .rank = rank,
                                                        .rows = 1 + (cols + rank) % 9,
                                                        .cols = cols},
                                  how & 2, how & 4);
}

/* The C twin is right: numbers whose products and sums are exact. */
TEST(test_factors_exact)
{
    enum { ROWS = 5, COLS = 37, RANK = 3 };
    const struct trib_kernels *c = trib_kernels_get("c");
    float m[ROWS * COLS], x[ROWS * COLS], q[RANK * COLS], out[ROWS * RANK];
    const struct trib_factors f = {q, COLS, RANK, ROWS, COLS};

    for (int i = 0; i < ROWS * COLS; i++)
        m[i] = (float)(i % 7), x[i] = (float)(i % 5 - 2);
    for (int i = 0; i < RANK * COLS; i++)
        q[i] = (float)(i % 11 - 5);
    c->project_rows(m, x, &f, out);
    for (int i = 0; i < ROWS * RANK; i++) {
        float sum = 0;
        for (int j = 0; j < COLS; j++) {
            const int at = i / RANK * COLS + j;
            assert_true(m[at] == (float)(at % 7 + at % 5 - 2));
            sum += m[at] * q[i % RANK * COLS + j];
        }
        assert_true(out[i] == sum);
    }
    c->take_rows(x, &f, out);
    for (int i = 0; i < ROWS * COLS; i++) {
        float sum = 0;
        for (int k = 0; k < RANK; k++)
            sum += out[i / COLS * RANK + k] * q[k * COLS + i % COLS];
        assert_true(x[i] == (float)(i % 5 - 2) - sum);
    }
}
