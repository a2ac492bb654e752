/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part of kernels_vec.h: products of matrix rows and a few factors. They are
 * memory-bound, so a row is read once for up to FACTORS factors.
 */

enum {
    FACTORS = 4, /* factors per pass over a row */
    /* rows at a time, so that the sums fit into registers */
    FACTOR_ROWS = VEC_LANES / 4,
    FACTOR_VECS = SQUARE_LANES / VEC_LANES,
};

struct factor_pass {
    const struct trib_factors *f;
    const float *x; /* added to m first, or NULL */
    size_t first, count; /* factors */
    size_t rows;
};

/* sum[row][factor] += one step of SQUARE_LANES columns, starting at column i. */
KERNEL void project_step(vec sum[FACTOR_ROWS][FACTORS][FACTOR_VECS], float *m,
                         const float *x, const float *q, size_t ld_q, size_t ld,
                         const struct factor_pass p)
{
#pragma GCC unroll 4
    for (size_t u = 0; u < FACTOR_VECS; u++) {
        vec factor[FACTORS];
#pragma GCC unroll 4
        for (size_t k = 0; k < p.count; k++)
            factor[k] = v_load(q + k * ld_q + u * VEC_LANES);
#pragma GCC unroll 4
        for (size_t r = 0; r < p.rows; r++) {
            const size_t at = r * ld + u * VEC_LANES;
            vec v = v_load(m + at);
            if (x) {
                v = v_add_f32(v, v_load(x + at));
                v_store(m + at, v);
            }
#pragma GCC unroll 4
            for (size_t k = 0; k < p.count; k++)
                sum[r][k][u] = v_fma_f32(v, factor[k], sum[r][k][u]);
        }
    }
}

/* The columns after the last whole step, padded with zeros. */
KERNEL void project_rest(vec sum[FACTOR_ROWS][FACTORS][FACTOR_VECS], float *m,
                         const float *x, size_t from, const struct factor_pass p)
{
    const struct trib_factors *f = p.f;
    const size_t rest = (f->cols - from) * sizeof(float);
    float rows[FACTOR_ROWS][SQUARE_LANES] = {{0}}, q[FACTORS][SQUARE_LANES] = {{0}};

    for (size_t r = 0; r < p.rows; r++) {
        for (size_t i = from; x && i < f->cols; i++)
            m[r * f->cols + i] += x[r * f->cols + i];
        memcpy(rows[r], m + r * f->cols + from, rest);
    }
    for (size_t k = 0; k < p.count; k++)
        memcpy(q[k], f->factors + (p.first + k) * f->ld + from, rest);
    project_step(sum, rows[0], NULL, q[0], SQUARE_LANES, SQUARE_LANES, p);
}

KERNEL void project_some(float *m, float *out, const struct factor_pass p)
{
    const struct trib_factors *f = p.f;
    const float *q = f->factors + p.first * f->ld;
    vec sum[FACTOR_ROWS][FACTORS][FACTOR_VECS];
    float lane[SQUARE_LANES];
    size_t i = 0;

#pragma GCC unroll 16
    for (size_t s = 0; s < FACTOR_ROWS * FACTORS * FACTOR_VECS; s++)
        sum[s / FACTOR_VECS / FACTORS][s / FACTOR_VECS % FACTORS][s % FACTOR_VECS] =
            v_zero();
    for (; i + SQUARE_LANES <= f->cols; i += SQUARE_LANES)
        project_step(sum, m + i, p.x ? p.x + i : NULL, q + i, f->ld, f->cols, p);
    if (i < f->cols)
        project_rest(sum, m, p.x, i, p);
#pragma GCC unroll 4
    for (size_t r = 0; r < p.rows; r++)
#pragma GCC unroll 4
        for (size_t k = 0; k < p.count; k++) {
#pragma GCC unroll 4
            for (size_t u = 0; u < FACTOR_VECS; u++)
                v_store(lane + u * VEC_LANES, sum[r][k][u]);
            out[r * f->rank + p.first + k] = fold_lanes(lane);
        }
}

/* A pass with constant counts. */
#define PROJECT(rows_, count_) \
    (x ? project_some(m, out, \
                      (struct factor_pass){p.f, x, p.first, count_, rows_}) \
       : project_some(m, out, \
                      (struct factor_pass){p.f, NULL, p.first, count_, rows_}))

static void project_four(float *m, const float *x, float *out,
                         const struct factor_pass p)
{
    if (p.rows == FACTOR_ROWS)
        PROJECT(FACTOR_ROWS, FACTORS);
    else
        PROJECT(1, FACTORS);
}

static void project_one(float *m, const float *x, float *out,
                        const struct factor_pass p)
{
    if (p.rows == FACTOR_ROWS)
        PROJECT(FACTOR_ROWS, 1);
    else
        PROJECT(1, 1);
}
#undef PROJECT

static void project_rows(float *m, const float *x, const struct trib_factors *f,
                         float *out)
{
    struct factor_pass p = {.f = f};

    for (size_t r = 0; r < f->rows; r += p.rows) {
        float *row = m + r * f->cols, *to = out + r * f->rank;
        const float *added = x ? x + r * f->cols : NULL;
        p.rows = f->rows - r < FACTOR_ROWS ? 1 : FACTOR_ROWS;
        for (p.first = 0; p.first < f->rank; added = NULL) {
            const bool four = f->rank - p.first >= FACTORS;
            (four ? project_four : project_one)(row, added, to, p);
            p.first += four ? FACTORS : 1;
        }
    }
}

KERNEL void take_row(float *row, const struct trib_factors *f, const float *weights,
                     size_t rank)
{
    size_t i = 0;
    for (; i + VEC_LANES <= f->cols; i += VEC_LANES) {
        vec sum = v_zero();
        for (size_t k = 0; k < rank; k++)
            sum = v_fma_f32(v_set_f32(weights[k]), v_load(f->factors + k * f->ld + i),
                            sum);
        v_store(row + i, v_finite_f32(v_sub_f32(v_load(row + i), sum)));
    }
    take_row_scalar(row, i, f, weights);
}

static void take_rows(float *m, const struct trib_factors *f, const float *weights)
{
    for (size_t r = 0; r < f->rows; r++, m += f->cols, weights += f->rank) {
        if (f->rank == FACTORS)
            take_row(m, f, weights, FACTORS);
        else
            take_row(m, f, weights, f->rank);
    }
}
