/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PowerSGD (Vogels, Karimireddy, Jaggi: "PowerSGD: practical low-rank gradient
 * compression for distributed optimization", NeurIPS 2019, algorithm 1; arXiv
 * 1905.13727).
 *
 * A chunk is a matrix M of `columns` columns, row-major, with its last row zero-padded;
 * if it has more columns than rows, M denotes its transpose. w is a rank, r the rank of
 * the approximation. Q has as many rows as M has columns, and r columns:
 *
 *     P = sum of M_w Q           what the ranks share; then orthonormalised by column
 *     Q_w = M_w^T P              the encoded chunk; Q_w add
 *     M ~ P Q^T                  Q being the sum, or mean, of the Q_w
 *
 * So the smaller factor is the encoded chunk, which must fit into a slot; the shared
 * factor may use several slots. The whole vector is one matrix if `columns` is given
 * and the chunk fits.
 *
 * This is one step of subspace iteration: Q is kept from start to start. Initially, and
 * if a column of Q becomes 0 or non-finite, it is drawn at random, the same on all
 * ranks. With error feedback a rank keeps M_w - P Q_w^T.
 *
 * If P and Q together have at least as many floats as M, M itself is sent. This applies
 * to all chunks of a vector or to none, and the ranks then share nothing.
 *
 * Columns kept in Q are scaled by powers of two: only their span matters. Large:
 * columns of M whose norm, summed over ranks, exceeds FLT_MAX decode to NaN or Inf,
 * since those of Q have it. Small: if all elements are below 2^-120 the result may be
 * 0. NaN and Inf: a row of M with either makes columns of P 0, and a column of M with
 * either decodes to NaN on all ranks; the next start is not affected. State: Q of each
 * chunk.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/minmax.h"
#include "base/rng.h"
#include "compress/models/model_ops.h"
#include "compress/models/orthonormal.h"

enum { PIECE = 1 << 20 }; /* elements without columns=: a matrix of 1024 x 1024 */

struct powersgd {
    struct trib_model base;
    float *q; /* of each chunk, per_chunk floats */
    size_t per_chunk, chunks;
    uint32_t step;
    float *padded; /* a matrix with its last row padded */
    float *factors; /* the factor that multiplies a chunk's rows, column by column */
    double *work;
    void *scratch;
};

struct shape {
    size_t rows, columns, rank;
    bool plain;
    bool turned; /* M is the transpose of the rows x columns elements */
};

/* Return the column count of a nearly square matrix; prefer a smaller one that needs no
 * padding. */
static size_t squarest(size_t n)
{
    const size_t root = (size_t)sqrt((double)n);

    for (size_t columns = root; columns > root / 2; columns--)
        if (n % columns == 0)
            return columns;
    return root ? root : 1;
}

static size_t longer(const struct shape *s)
{
    return s->turned ? s->columns : s->rows;
}

static size_t shorter(const struct shape *s)
{
    return s->turned ? s->rows : s->columns;
}

static size_t rows_of(size_t n, size_t columns)
{
    return n / columns + (n % columns != 0);
}

/* Return the matrix of a chunk of n elements: its columns are those of a whole
 * piece. */
static struct shape shape_of(const struct trib_codec *c, size_t piece, size_t n)
{
    const double asked = c->param[TRIB_PARAM_COLUMNS];
    const size_t wanted = asked > 0 ? (size_t)asked : squarest(piece);
    const size_t rank = (size_t)c->param[TRIB_PARAM_RANK];
    struct shape s = {.columns = wanted < piece || !piece ? wanted : piece};

    const size_t all = rows_of(piece, s.columns),
                 most = trib_min(rank, trib_min(all, s.columns));
    s.plain = all * s.columns <= (all + s.columns) * most;
    s.rows = rows_of(n, s.columns);
    s.turned = s.columns > s.rows;
    s.rank = trib_min(rank, shorter(&s));
    return s;
}

static size_t piece(const struct trib_codec *c)
{
    return c->param[TRIB_PARAM_COLUMNS] > 0 ? SIZE_MAX : PIECE;
}

static size_t unit(const struct trib_codec *c)
{
    return c->param[TRIB_PARAM_COLUMNS] > 0 ? (size_t)c->param[TRIB_PARAM_COLUMNS] : 1;
}

static size_t floats_of(const struct shape *s, size_t n)
{
    return s->plain ? n : shorter(s) * s->rank;
}

/* A shorter chunk has at most as many of both. */
static size_t most(const struct trib_codec *c, size_t n)
{
    const struct shape s = shape_of(c, n, n);
    return floats_of(&s, n);
}

static size_t share_floats(const struct trib_codec *c, size_t n)
{
    const struct shape s = shape_of(c, n, n);
    return s.plain ? 0 : longer(&s) * s.rank;
}

static struct shape shape_in(const struct trib_model *m, size_t n)
{
    return shape_of(m->codec, m->opts.piece, n);
}

static float *q_of(struct powersgd *p, const struct trib_model_chunk *c)
{
    return p->q + c->first / p->base.opts.piece * p->per_chunk;
}

/* Magnitude of elements of Q. It does not affect the result, but P = M Q must fit into
 * float32: small enough for rows of FLT_MAX summed over all ranks, large enough to keep
 * something of M at 2^-120. */
#define SPAN 0x1p-16f

/* Draw approximately N(0, SPAN): a sum of four uniform numbers, with the same bits
 * everywhere. */
static void draw_column(struct powersgd *p, const struct shape *s, size_t first,
                        size_t column, float *q)
{
    const struct trib_rng rng = {p->base.opts.seed, UINT32_MAX, p->step};

    for (size_t i = 0; i < shorter(s); i++) {
        const uint64_t at = (first + i) * s->rank + column;
        const struct trib_rng_block b = trib_rng_draw4(rng, at);
        double sum = -2.0;
        for (int j = 0; j < 4; j++)
            sum += 0x1p-32 * (double)b.word[j];
        q[i * s->rank + column] = (float)(sum * 1.7320508) * SPAN;
    }
}

/* Scale a column's largest magnitude to [SPAN, 2 SPAN); redraw the column if it is 0 or
 * not finite. */
static void keep_column(struct powersgd *p, const struct shape *s, size_t first,
                        size_t column, float *q)
{
    float largest = 0.0f;
    bool finite = true;

    for (size_t i = 0; i < shorter(s); i++) {
        const float v = fabsf(q[i * s->rank + column]);
        finite = finite && isfinite(v);
        largest = v > largest ? v : largest;
    }
    if (!finite || largest == 0.0f) {
        draw_column(p, s, first, column, q);
        return;
    }
    const int exponent = -ilogbf(largest);
    for (size_t i = 0; i < shorter(s); i++)
        q[i * s->rank + column] = ldexpf(q[i * s->rank + column], exponent) * SPAN;
}

static void destroy(struct trib_model *m)
{
    struct powersgd *p = (struct powersgd *)m;

    free(p->q);
    free(p->padded);
    free(p->factors);
    free(p->work);
    free(p->scratch);
    free(p);
}

static void draw_all(struct powersgd *p, const struct trib_codec *c)
{
    const struct trib_model_opts *o = &p->base.opts;

    for (size_t first = 0; first < o->total; first += o->piece) {
        const size_t left = o->total - first, n = left < o->piece ? left : o->piece;
        const struct shape s = shape_of(c, o->piece, n);
        for (size_t j = 0; !s.plain && j < s.rank; j++)
            draw_column(p, &s, first, j, p->q + first / o->piece * p->per_chunk);
    }
}

static trib_status_t create(const struct trib_codec *c,
                            const struct trib_model_opts *opts, struct trib_error *err,
                            struct trib_model **out)
{
    struct powersgd *p = calloc(1, sizeof *p);
    const struct shape s = shape_of(c, opts->piece, opts->piece);

    if (!p)
        return trib_fail(err, TRIB_ERR_NO_MEMORY,
                         "no memory for the factors of powersgd");
    p->base.opts = *opts;
    p->chunks = opts->piece ? (opts->total + opts->piece - 1) / opts->piece : 0;
    p->per_chunk = most(c, opts->piece);
    p->q = calloc(p->chunks * p->per_chunk + 1, sizeof *p->q);
    p->padded = calloc(s.rows * s.columns + 1, sizeof *p->padded);
    p->factors = calloc(s.columns * s.rank + 1, sizeof *p->factors);
    p->work = calloc(longer(&s) * s.rank + 1, sizeof *p->work);
    p->scratch = aligned_alloc(64, TRIB_GEMM_SCRATCH);
    if (!p->q || !p->padded || !p->factors || !p->work || !p->scratch) {
        destroy(&p->base);
        return trib_fail(err, TRIB_ERR_NO_MEMORY,
                         "no memory for the factors of powersgd");
    }
    draw_all(p, c);
    *out = &p->base;
    return TRIB_OK;
}

static void begin(struct trib_model *m, uint32_t step)
{
    ((struct powersgd *)m)->step = step;
}

static uint32_t epoch(const struct trib_model *m)
{
    (void)m;
    return 1;
}

/* Return the chunk as rows x columns elements. */
static const float *matrix_of(struct powersgd *p, const struct shape *s, const float *x,
                              size_t n)
{
    if (s->rows * s->columns == n)
        return x;
    memcpy(p->padded, x, n * sizeof *x);
    memset(p->padded + n, 0, (s->rows * s->columns - n) * sizeof *x);
    return p->padded;
}

/* Store the factor with s.columns rows, such as Q, column by column. */
static void keep_factors(struct powersgd *p, const struct shape *s, const float *q)
{
    for (size_t k = 0; k < s->rank; k++)
        for (size_t i = 0; i < s->columns; i++)
            p->factors[k * s->columns + i] = q[i * s->rank + k];
}

static struct trib_factors factors_of(const struct powersgd *p, const struct shape *s,
                                      size_t rows, size_t cols)
{
    return (struct trib_factors){p->factors, s->columns, s->rank, rows, cols};
}

/* M += x, unless x is NULL, and out = M Q; the n elements may end within a row. */
static void project(struct powersgd *p, const struct shape *s, float *m, const float *x,
                    size_t n, float *out)
{
    const struct trib_kernels *kernels = p->base.codec->kernels;
    const size_t rows = n / s->columns, at = rows * s->columns;
    const struct trib_factors whole = factors_of(p, s, rows, s->columns),
                              last = factors_of(p, s, 1, n - at);

    kernels->project_rows(m, x, &whole, out);
    if (at < n)
        kernels->project_rows(m + at, x ? x + at : NULL, &last, out + rows * s->rank);
}

static void share(struct trib_model *m, const struct trib_model_chunk *c,
                  const float *x, float *proposal_out)
{
    struct powersgd *p = (struct powersgd *)m;
    const struct shape s = shape_in(m, c->n);

    if (s.plain)
        return;
    if (!s.turned) {
        keep_factors(p, &s, q_of(p, c));
        /* nothing is added, so x is not modified */
        project(p, &s, (float *)(uintptr_t)x, NULL, c->n, proposal_out);
        return;
    }
    const struct trib_gemm g = {.m = s.columns, .n = s.rank, .k = s.rows,
                                .a = matrix_of(p, &s, x, c->n), .b = q_of(p, c),
                                .c = proposal_out,
                                .lda = s.columns, .ldb = s.rank, .ldc = s.rank,
                                .a_transposed = true, .scratch = p->scratch};
    m->codec->kernels->gemm(&g);
}

enum { PART = 1 << 16 }; /* elements of a part, which fit into the second-level cache */

/* Return whole rows; 0: the chunk is short, or is sent unchanged. */
static size_t part(const struct trib_model *m, size_t n)
{
    const struct shape s = shape_in(m, n);
    const size_t rows = s.columns < PART ? PART / s.columns : 1;

    return s.plain || n <= 2 * rows * s.columns ? 0 : rows * s.columns;
}

/* Return the part's rows as a separate matrix. */
static struct shape shape_of_part(struct trib_model *m,
                                  const struct trib_model_part *part)
{
    struct shape s = shape_in(m, part->chunk->n);

    s.rows = rows_of(part->n, s.columns);
    return s;
}

static void propose_part(struct trib_model *m, const struct trib_model_part *part,
                         const float *x, float *residual, float *proposal_out)
{
    struct powersgd *p = (struct powersgd *)m;
    const struct trib_kernels *kernels = m->codec->kernels;
    const struct shape s = shape_of_part(m, part);
    const size_t row = part->at / s.columns * s.rank;
    const float *q = q_of(p, part->chunk);

    if (!s.turned) {
        if (part->at == 0)
            keep_factors(p, &s, q);
        project(p, &s, residual, x, part->n, proposal_out + row);
        return;
    }
    const struct trib_reduce_args sum = {.src = {residual, x}, .dst = {residual},
                                         .n_src = 2, .n_dst = 1, .n = part->n};
    kernels->reduce[TRIB_F32][TRIB_SUM](&sum);
    const struct trib_gemm g = {.m = s.columns, .n = s.rank, .k = s.rows,
                                .a = matrix_of(p, &s, residual, part->n), .b = q + row,
                                .c = proposal_out,
                                .lda = s.columns, .ldb = s.rank, .ldc = s.rank,
                                .a_transposed = true, .add = true,
                                .scratch = p->scratch};
    kernels->gemm(&g);
}

static void settle(struct trib_model *m, const struct trib_model_chunk *c, float *sum)
{
    struct powersgd *p = (struct powersgd *)m;
    const struct shape s = shape_in(m, c->n);

    if (!s.plain)
        (void)trib_orthonormalise(sum, longer(&s), s.rank, p->work);
}

static size_t length(const struct trib_model *m, size_t n)
{
    const struct shape s = shape_in(m, n);
    return floats_of(&s, n);
}

static void forward(struct trib_model *m, const struct trib_model_chunk *c,
                    const float *x, float *y_out)
{
    struct powersgd *p = (struct powersgd *)m;
    const struct shape s = shape_in(m, c->n);

    if (s.plain) {
        memcpy(y_out, x, c->n * sizeof *x);
        return;
    }
    const struct trib_gemm g = {.m = shorter(&s),
                                .n = s.rank,
                                .k = longer(&s),
                                .a = matrix_of(p, &s, x, c->n),
                                .b = c->agreed,
                                .c = y_out,
                                .lda = s.columns,
                                .ldb = s.rank,
                                .ldc = s.rank,
                                .a_transposed = !s.turned,
                                .scratch = p->scratch};
    m->codec->kernels->gemm(&g);
}

/* P and Q of a chunk, and the first row of the product. */
struct factors {
    const float *agreed, *y;
    size_t row;
};

/* Set x_out to the first n elements of the product of the factors, with this shape. */
static void outer_product(struct trib_model *m, const struct shape *s,
                          const struct factors *f, size_t n, float *x_out)
{
    struct powersgd *p = (struct powersgd *)m;
    const bool whole = s->rows * s->columns == n;
    const struct trib_gemm g = {.m = s->rows,
                                .n = s->columns,
                                .k = s->rank,
                                .a = (s->turned ? f->y : f->agreed) + f->row * s->rank,
                                .b = s->turned ? f->agreed : f->y,
                                .c = whole ? x_out : p->padded,
                                .lda = s->rank,
                                .ldb = s->rank,
                                .ldc = s->columns,
                                .b_transposed = true,
                                .scratch = p->scratch};

    m->codec->kernels->gemm(&g);
    if (!whole)
        memcpy(x_out, p->padded, n * sizeof *x_out);
}

static void inverse(struct trib_model *m, const struct trib_model_chunk *c, float *y,
                    bool own, float *x_out)
{
    const struct shape s = shape_in(m, c->n);

    (void)own;
    if (s.plain) {
        memcpy(x_out, y, c->n * sizeof *y);
        return;
    }
    outer_product(m, &s, &(struct factors){c->agreed, y, 0}, c->n, x_out);
}

static void take_part(struct trib_model *m, const struct trib_model_part *part,
                      const float *y, float *x)
{
    struct powersgd *p = (struct powersgd *)m;
    const struct shape s = shape_of_part(m, part);
    const float *agreed = part->chunk->agreed, *weights = s.turned ? y : agreed;
    const size_t rows = part->n / s.columns, at = rows * s.columns;
    const struct trib_factors whole = factors_of(p, &s, rows, s.columns),
                              last = factors_of(p, &s, 1, part->n - at);

    if (part->at == 0)
        keep_factors(p, &s, s.turned ? agreed : y);
    weights += part->at / s.columns * s.rank;
    m->codec->kernels->take_rows(x, &whole, weights);
    if (at < part->n)
        m->codec->kernels->take_rows(x + at, &last, weights + rows * s.rank);
}

static void learn(struct trib_model *m, const struct trib_model_chunk *c,
                  const float *y, const float *x)
{
    struct powersgd *p = (struct powersgd *)m;
    const struct shape s = shape_in(m, c->n);
    float *q = q_of(p, c);

    (void)x;
    if (s.plain)
        return;
    memcpy(q, y, shorter(&s) * s.rank * sizeof *q);
    for (size_t j = 0; j < s.rank; j++)
        keep_column(p, &s, c->first, j, q);
}

static size_t bytes(const struct trib_model *m)
{
    const struct powersgd *p = (const struct powersgd *)m;
    return p->chunks * p->per_chunk * sizeof *p->q;
}

static void write(const struct trib_model *m, uint8_t *out)
{
    const struct powersgd *p = (const struct powersgd *)m;
    memcpy(out, p->q, bytes(m));
}

static trib_status_t read(struct trib_model *m, const uint8_t *src,
                          struct trib_error *err)
{
    struct powersgd *p = (struct powersgd *)m;

    for (size_t i = 0; i < bytes(m) / sizeof(float); i++) {
        float v;
        memcpy(&v, src + i * sizeof v, sizeof v);
        if (!isfinite(v))
            return trib_fail(err, TRIB_ERR_MISMATCH,
                             "a factor of powersgd is not finite (number %zu)", i);
    }
    memcpy(p->q, src, bytes(m));
    return TRIB_OK;
}

const struct trib_model_ops trib_model_powersgd = {
    .projects = true,
    .params = TRIB_PARAM_BIT(RANK) | TRIB_PARAM_BIT(COLUMNS),
    .undivided = true,
    .coded_always = true,
    .piece = piece,
    .unit = unit,
    .refusal = trib_model_no_refusal,
    .most = most,
    .trained = most,
    .agreed_floats = share_floats,
    .create = create,
    .destroy = destroy,
    .begin = begin,
    .epoch = epoch,
    .learning = trib_model_not_learning,
    .exchange_floats = trib_model_no_exchange_floats,
    .exchange = trib_model_no_exchange,
    .exchanged = trib_model_not_exchanged,
    .propose = share,
    .settle = settle,
    .length = length,
    .forward = forward,
    .inverse = inverse,
    .part = part,
    .propose_part = propose_part,
    .take_part = take_part,
    .learn = learn,
    .bytes = bytes,
    .write = write,
    .read = read,
};

const struct trib_transform trib_transform_powersgd = {.name = "powersgd",
                                                       .model = &trib_model_powersgd};
