/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part of kernels_vec.h: matrix product. A tile of C, V_TILE_ROWS by two vecs, stays in
 * registers over GEMM_DEPTH terms. A tile row needs one element of A per term, and the
 * columns need two vecs of B; both are packed for sequential reads. Between two such
 * runs C itself stores the partial sums, so the terms of an element are added in order.
 *
 * If C has fewer columns than a tile, its transpose is computed: C' = B' A'.
 */

enum {
    TILE_ROWS = V_TILE_ROWS,
    TILE_COLS = 2 * VEC_LANES,
    GEMM_DEPTH = 384, /* terms; a tile's rows of A then stay in L1 */
    GEMM_COLS = 10 * 32, /* columns of B that fit into L2 */
    GEMM_FEW = 2 * TILE_ROWS, /* up to this many rows, B is not kept packed */
    GEMM_FLOATS = GEMM_DEPTH * GEMM_COLS, /* packed floats of B */
    SWEEP_TERMS = 8, /* rows of B per sweep */
    SWEEP_FLOATS = 1 << 16, /* size of B from which its memory order matters */
    GEMM_A_FLOATS = GEMM_DEPTH * GEMM_FEW + VEC_LANES,
};
_Static_assert(GEMM_COLS % TILE_COLS == 0, "whole tiles");
_Static_assert((GEMM_A_FLOATS + 16 + GEMM_FLOATS) * sizeof(float) <=
                   TRIB_GEMM_SCRATCH,
               "scratch suffices");

/* One operand; `at` counts rows of A or columns of B. */
struct gemm_side {
    const float *p;
    size_t ld;
    size_t count;
    bool terms_together; /* (at, term) is at p[at * ld + term], else at p[term * ld +
                          * at] */
};

/* C' = rows x cols, element (i, j) at c[i * row + j * col] */
struct gemm_job {
    struct gemm_side rows, cols;
    float *c;
    size_t row, col;
    size_t k;
    bool add;
    float *packed_rows, *packed_cols;
};

KERNEL const float *side_at(const struct gemm_side *s, size_t at, size_t term)
{
    return s->terms_together ? s->p + at * s->ld + term : s->p + term * s->ld + at;
}

KERNEL size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Transpose VEC_LANES terms of `count` rows to dst[term * width + row]; each term
 * writes a whole vec. */
KERNEL void pack_square(float *dst, size_t width, const float *src, size_t ld,
                        size_t count)
{
    vec t[VEC_LANES];
#pragma GCC unroll 16
    for (size_t r = 0; r < VEC_LANES; r++)
        t[r] = r < count ? v_load(src + r * ld) : v_zero();
    v_transpose(t);
#pragma GCC unroll 16
    for (size_t r = 0; r < VEC_LANES; r++)
        v_store(dst + r * width, t[r]);
}

/* Pack `depth` terms of rows or columns first … first + width - 1 to dst[term * width +
 * row]. Rows past the last are 0. Writes up to one vec past the end. */
KERNEL void pack(float *dst, size_t width, const struct gemm_side *s, size_t first,
                 size_t term, size_t depth)
{
    const size_t count = least(width, s->count - first);
    const float *src = side_at(s, first, term);
    size_t p = 0;
    if (s->terms_together) {
        for (; p + VEC_LANES <= depth; p += VEC_LANES)
            for (size_t r = 0; r < width; r += VEC_LANES)
                pack_square(dst + p * width + r, width, src + r * s->ld + p, s->ld,
                            count > r ? count - r : 0);
        for (; p < depth; p++)
            for (size_t r = 0; r < width; r++)
                dst[p * width + r] = r < count ? src[r * s->ld + p] : 0.0f;
    } else if (count == width) {
        for (; p < depth; p++)
            memcpy(dst + p * width, src + p * s->ld, width * sizeof *dst);
    } else {
        for (; p < depth; p++)
            for (size_t r = 0; r < width; r++)
                dst[p * width + r] = r < count ? src[p * s->ld + r] : 0.0f;
    }
}

/* Add a b over k terms to `rows` rows of TILE_COLS columns of c. */
KERNEL void tile_of(float *c, size_t ldc, const float *a, const float *b, size_t ldb,
                    size_t k, bool zero, int rows)
{
    vec sum[TILE_ROWS][2];
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
        sum[r][0] = zero ? v_zero() : v_load(c + (size_t)r * ldc);
        sum[r][1] = zero ? v_zero() : v_load(c + (size_t)r * ldc + VEC_LANES);
    }
    for (size_t p = 0; p < k; p++, a += TILE_ROWS, b += ldb) {
        const vec b0 = v_load(b), b1 = v_load(b + VEC_LANES);
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            const vec one = v_set_f32(a[r]);
            sum[r][0] = v_fma_f32(one, b0, sum[r][0]);
            sum[r][1] = v_fma_f32(one, b1, sum[r][1]);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
        v_store(c + (size_t)r * ldc, sum[r][0]);
        v_store(c + (size_t)r * ldc + VEC_LANES, sum[r][1]);
    }
}

struct gemm_tile {
    const float *a; /* packed */
    const float *b;
    size_t ldb;
    size_t k;
    bool zero;
    size_t rows;
};

static void tile(float *c, size_t ldc, const struct gemm_tile *t)
{
    switch (t->rows) {
#define TILE_CASE(rows) \
    case rows: \
        if (rows <= TILE_ROWS) \
            tile_of(c, ldc, t->a, t->b, t->ldb, t->k, t->zero, rows); \
        break
        TILE_CASE(1);
        TILE_CASE(2);
        TILE_CASE(3);
        TILE_CASE(4);
        TILE_CASE(5);
        TILE_CASE(6);
        TILE_CASE(7);
        TILE_CASE(8);
        TILE_CASE(9);
        TILE_CASE(10);
        TILE_CASE(11);
        TILE_CASE(12);
#undef TILE_CASE
    }
}

/* A tile that is partial or not contiguous in C. */
static void tile_apart(const struct gemm_job *j, float *c, size_t cols,
                       const struct gemm_tile *t)
{
    float here[TILE_ROWS * TILE_COLS];
    for (size_t r = 0; r < t->rows && !t->zero; r++)
        for (size_t q = 0; q < TILE_COLS; q++)
            here[r * TILE_COLS + q] = q < cols ? c[r * j->row + q * j->col] : 0.0f;
    tile(here, TILE_COLS, t);
    for (size_t r = 0; r < t->rows; r++)
        for (size_t q = 0; q < cols; q++)
            c[r * j->row + q * j->col] = here[r * TILE_COLS + q];
}

KERNEL void tile_at(const struct gemm_job *j, size_t row, size_t col,
                    const struct gemm_tile *t)
{
    const size_t cols = least(TILE_COLS, j->cols.count - col);
    float *c = j->c + row * j->row + col * j->col;
    if (cols == TILE_COLS && j->col == 1)
        tile(c, j->row, t);
    else
        tile_apart(j, c, cols, t);
}

/* At most GEMM_FEW rows: these stay packed, and each column of B is read once. */
static void gemm_few(const struct gemm_job *j)
{
    for (size_t term = 0; term < j->k; term += GEMM_DEPTH) {
        struct gemm_tile t = {.k = least(GEMM_DEPTH, j->k - term),
                              .zero = !term && !j->add};
        for (size_t row = 0; row < j->rows.count; row += TILE_ROWS)
            pack(j->packed_rows + row * t.k, TILE_ROWS, &j->rows, row, term, t.k);
        for (size_t col = 0; col < j->cols.count; col += TILE_COLS) {
            const bool direct =
                !j->cols.terms_together && col + TILE_COLS <= j->cols.count;
            if (!direct)
                pack(j->packed_cols, TILE_COLS, &j->cols, col, term, t.k);
            t.b = direct ? side_at(&j->cols, col, term) : j->packed_cols;
            t.ldb = direct ? j->cols.ld : TILE_COLS;
            for (size_t row = 0; row < j->rows.count; row += TILE_ROWS) {
                t.a = j->packed_rows + row * t.k;
                t.rows = least(TILE_ROWS, j->rows.count - row);
                tile_at(j, row, col, &t);
            }
        }
    }
}

KERNEL size_t whole_tiles(size_t cols)
{
    return (cols + TILE_COLS - 1) / TILE_COLS * TILE_COLS;
}

/* True if B is long, stored term by term, and the sums of all its columns fit into
 * scratch. */
KERNEL bool sweeps(const struct gemm_job *j)
{
    const size_t width = whole_tiles(j->cols.count);

    return !j->cols.terms_together && j->rows.count <= GEMM_FEW &&
           j->k > SWEEP_TERMS && width >= SWEEP_FLOATS / j->k && width >= GEMM_COLS &&
           width <= (GEMM_FLOATS - SWEEP_TERMS * TILE_COLS) / GEMM_FEW;
}

/* sums[row * width + col] += SWEEP_TERMS terms, starting at `term` */
static void sweep(const struct gemm_job *j, float *sums, size_t width, size_t term,
                  bool zero)
{
    float *edge = sums + GEMM_FEW * width;
    struct gemm_tile t = {.k = least(SWEEP_TERMS, j->k - term), .zero = zero};

    for (size_t row = 0; row < j->rows.count; row += TILE_ROWS)
        pack(j->packed_rows + row * t.k, TILE_ROWS, &j->rows, row, term, t.k);
    for (size_t col = 0; col < j->cols.count; col += TILE_COLS) {
        const bool direct = col + TILE_COLS <= j->cols.count;
        if (!direct)
            pack(edge, TILE_COLS, &j->cols, col, term, t.k);
        t.b = direct ? side_at(&j->cols, col, term) : edge;
        t.ldb = direct ? j->cols.ld : TILE_COLS;
        for (size_t row = 0; row < j->rows.count; row += TILE_ROWS) {
            t.a = j->packed_rows + row * t.k;
            t.rows = least(TILE_ROWS, j->rows.count - row);
            tile(sums + row * width + col, width, &t);
        }
    }
}

/* At most GEMM_FEW rows and a long B: B is read sequentially, a few rows at a time,
 * while the sums stay in the cache. */
static void gemm_sweep(const struct gemm_job *j)
{
    const size_t width = whole_tiles(j->cols.count);
    float *sums = j->packed_cols;

    for (size_t row = 0; row < j->rows.count && j->add; row++)
        for (size_t col = 0; col < width; col++)
            sums[row * width + col] =
                col < j->cols.count ? j->c[row * j->row + col * j->col] : 0.0f;
    for (size_t term = 0; term < j->k; term += SWEEP_TERMS)
        sweep(j, sums, width, term, !term && !j->add);
    for (size_t col = 0; col < j->cols.count; col++)
        for (size_t row = 0; row < j->rows.count; row++)
            j->c[row * j->row + col * j->col] = sums[row * width + col];
}

/* Columns of B packed at a time. With few terms they span whole rows of C, so that C is
 * written sequentially. */
KERNEL size_t kept_cols(const struct gemm_job *j)
{
    enum { FLOATS = 8192, MOST = 4096 };

    if (j->k > FLOATS / GEMM_COLS)
        return GEMM_COLS;
    return least(FLOATS / j->k, MOST) / TILE_COLS * TILE_COLS;
}

static void gemm_block(const struct gemm_job *j, size_t first_col, struct gemm_tile t,
                       size_t term)
{
    const size_t end = least(first_col + kept_cols(j), j->cols.count);
    for (size_t col = first_col; col < end; col += TILE_COLS)
        pack(j->packed_cols + (col - first_col) * t.k, TILE_COLS, &j->cols, col, term,
             t.k);
    t.ldb = TILE_COLS;
    t.a = j->packed_rows;
    for (size_t row = 0; row < j->rows.count; row += TILE_ROWS) {
        t.rows = least(TILE_ROWS, j->rows.count - row);
        pack(j->packed_rows, TILE_ROWS, &j->rows, row, term, t.k);
        for (size_t col = first_col; col < end; col += TILE_COLS) {
            t.b = j->packed_cols + (col - first_col) * t.k;
            tile_at(j, row, col, &t);
        }
    }
}

static void gemm_many(const struct gemm_job *j)
{
    for (size_t col = 0; col < j->cols.count; col += kept_cols(j)) {
        for (size_t term = 0; term < j->k; term += GEMM_DEPTH) {
            const struct gemm_tile t = {.k = least(GEMM_DEPTH, j->k - term),
                                        .zero = !term && !j->add};
            gemm_block(j, col, t, term);
        }
    }
}

static void gemm(const struct trib_gemm *g)
{
    const struct gemm_side a = {g->a, g->lda, g->m, !g->a_transposed};
    const struct gemm_side b = {g->b, g->ldb, g->n, g->b_transposed};
    const bool turn = g->n < TILE_COLS && g->n < g->m;
    const struct gemm_job j = {
        .rows = turn ? b : a,
        .cols = turn ? a : b,
        .c = g->c,
        .row = turn ? 1 : g->ldc,
        .col = turn ? g->ldc : 1,
        .k = g->k,
        .add = g->add,
        .packed_cols = g->scratch,
        .packed_rows = (float *)g->scratch + GEMM_FLOATS + 16,
    };
    if (!g->k)
        gemm_scalar(g);
    else if (sweeps(&j))
        gemm_sweep(&j);
    else if (j.rows.count <= GEMM_FEW)
        gemm_few(&j);
    else
        gemm_many(&j);
}
