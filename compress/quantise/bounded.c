/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bound: an error bound for each element of the sum.
 *
 *     paper      Di and Cappello, IPDPS 2016; sums: Huang et al., SC 2024
 *     equation   |C(x) - x| <= bound / ranks (for a mean: bound). So no element of the
 *                sum of all ranks is off by more than the bound, before the sum is
 *                rounded to its dtype. The bound is abs, or rel times the largest
 *                magnitude of any rank in the bucket
 *     wire       bounded.h
 *     random     nothing
 *     NaN, Inf   the bucket is sent as floating-point numbers (with rel those of all
 *                ranks), which are summed in float64
 *     large      as NaN: from 2^30 steps, and if a sum of integers exceeds 32 bits. The
 *                bound then holds up to the precision of float64: 2^-53 of the partial
 *                sums
 *     state      none
 */
#include "compress/quantise/bounded_parts.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

enum {
    HEADER_BYTES = 8,
    FORM_BYTES = 1,
    BEFORE_BYTES = 4,
    BLOCK_BYTES_MAX = 1 + 4 * TRIB_BOUNDED_BLOCK, /* head and codes */
};
_Static_assert(sizeof(struct trib_bounded_header) == HEADER_BYTES,
               "header has no padding");

static const double integers_end = 0x1p30;

/* The rounding of product and quotient in float64 is far below this fraction of half a
 * step, for integers in this range. */
static const double step_part = 1 - 0x1p-20;

static bool relative(const struct trib_codec *c)
{
    return c->param[TRIB_PARAM_REL] > 0;
}

static size_t bucket_of(const struct trib_codec *c)
{
    return (size_t)c->param[TRIB_PARAM_BUCKET];
}

static size_t buckets_of(const struct trib_codec *c, size_t n)
{
    return n / bucket_of(c) + (n % bucket_of(c) != 0);
}

static size_t blocks_of(size_t m)
{
    return (m + TRIB_BOUNDED_BLOCK - 1) / TRIB_BOUNDED_BLOCK;
}

size_t trib_bounded_bucket_length(const struct trib_codec *c, size_t n, size_t at)
{
    return n - at < bucket_of(c) ? n - at : bucket_of(c);
}

static size_t bucket_bytes_max(size_t m, bool part)
{
    const size_t integers = BEFORE_BYTES + blocks_of(m) * BLOCK_BYTES_MAX;
    const size_t doubles = part ? m * sizeof(double) : 0;
    return FORM_BYTES + (doubles > integers ? doubles : integers);
}

static size_t scales_bytes(const struct trib_codec *c, size_t n)
{
    return relative(c) ? buckets_of(c, n) * sizeof(float) : 0;
}

static size_t word_bytes_max(const struct trib_codec *c, size_t n, bool part)
{
    const size_t whole = n / bucket_of(c), rest = n % bucket_of(c);
    return n ? HEADER_BYTES + scales_bytes(c, n) +
                   whole * bucket_bytes_max(bucket_of(c), part) +
                   (rest ? bucket_bytes_max(rest, part) : 0)
             : 0;
}

size_t trib_bounded_bound(const struct trib_codec *c, size_t n)
{
    return word_bytes_max(c, n, c->ranks > 2);
}

/* Bound for one contribution and for the finished sum. */
size_t trib_bounded_whole_bound(const struct trib_codec *c, size_t n)
{
    return word_bytes_max(c, n, false);
}

bool trib_bounded_is_part(const struct trib_codec *c, uint64_t contributions)
{
    return contributions > 1 && c->ranks > 2;
}

/* ---- the integers of a bucket ---------------------------------------------------- */

/* Compute the grid. scale: the largest magnitude, with rel. Return false if there is no
 * grid. */
static bool grid_open(const struct trib_codec *c, float scale,
                      struct trib_bounded_grid *g)
{
    const double share = c->mean ? 1 : c->ranks;
    const double most = relative(c) ? c->param[TRIB_PARAM_REL] * (double)scale
                                    : c->param[TRIB_PARAM_ABS];
    g->step = 2 * most / share * step_part;
    g->per_step = 1 / g->step;
    const double largest = fmin(integers_end * g->step, (double)FLT_MAX);
    g->largest = (float)largest;
    if ((double)g->largest > largest)
        g->largest = nextafterf(g->largest, 0);
    return isfinite(scale) && scale >= 0 && g->step > 0 && isfinite(g->per_step);
}

bool trib_bounded_grid_of(const struct trib_codec *c, const uint8_t *scales, size_t b,
                          struct trib_bounded_grid *grid_out)
{
    float scale = 0;
    if (scales)
        memcpy(&scale, scales + b * sizeof scale, sizeof scale);
    return grid_open(c, scale, grid_out);
}

/* Return the largest magnitude; Inf if there is a NaN. */
static float scale_of(const struct trib_codec *c, const float *x, size_t n)
{
    const uint32_t bits = c->kernels->max_magnitude(x, n);
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return isnan(scale) ? INFINITY : scale;
}

size_t trib_bounded_agreed_floats(const struct trib_codec *c, size_t n)
{
    return relative(c) ? buckets_of(c, n) : 0;
}

void trib_bounded_propose(const struct trib_codec *c, const float *x, size_t n,
                    float *proposal_out)
{
    for (size_t at = 0; at < n && relative(c); at += bucket_of(c))
        *proposal_out++ = scale_of(c, x + at, trib_bounded_bucket_length(c, n, at));
}

/* ---- a bucket -------------------------------------------------------------------- */

uint8_t *trib_bounded_integers_write(const struct trib_codec *c, const int32_t *q,
                                     size_t m, uint8_t *dst)
{
    int32_t d[TRIB_BOUNDED_BUCKET_MAX];
    const size_t blocks = blocks_of(m);
    if (!c->kernels->bounded_differences(d, q, m)) {
        *dst = TRIB_BOUNDED_NOTHING;
        return dst + FORM_BYTES;
    }
    for (size_t i = m; i < blocks * TRIB_BOUNDED_BLOCK; i++)
        d[i] = d[m - 1];
    const uint32_t before = (uint32_t)q[0] - (uint32_t)d[0];
    *dst++ = TRIB_BOUNDED_INTEGERS;
    memcpy(dst, &before, BEFORE_BYTES);
    dst += BEFORE_BYTES;
    return dst + blocks + c->kernels->bounded_pack(dst + blocks, dst, d, blocks);
}

uint8_t *trib_bounded_floats_write(const float *x, size_t m, uint8_t *dst)
{
    *dst++ = TRIB_BOUNDED_FLOATS;
    memcpy(dst, x, m * sizeof *x);
    return dst + m * sizeof *x;
}

void trib_bounded_integers(const struct trib_codec *c,
                           const struct trib_bounded_bucket *b, size_t m, int32_t *q)
{
    c->kernels->bounded_unpack(q, b->heads, b->content, blocks_of(m), b->before);
}

/* ---- encode ---------------------------------------------------------------------- */

/* x: bucket number b of v; scales: NULL, or where to write its scale */
static uint8_t *encode_bucket(const struct trib_codec *c, const struct trib_values *v,
                              size_t b, uint8_t *scales, uint8_t *dst)
{
    const size_t at = b * bucket_of(c), m = trib_bounded_bucket_length(c, v->n, at);
    const float *x = v->x + at;
    int32_t q[TRIB_BOUNDED_BUCKET_MAX];
    struct trib_bounded_grid grid;
    if (scales) {
        const float scale = v->agreed ? v->agreed[b] : scale_of(c, x, m);
        memcpy(scales + b * sizeof scale, &scale, sizeof scale);
    }
    if (trib_bounded_grid_of(c, scales, b, &grid) &&
        c->kernels->bounded_quantise(q, x, m, &grid))
        return trib_bounded_integers_write(c, q, m, dst);
    return trib_bounded_floats_write(x, m, dst);
}

static size_t encode_word(const struct trib_codec *c, const struct trib_values *v,
                          uint8_t *dst)
{
    static const struct trib_bounded_header header = {.contributions = 1};
    uint8_t *at = dst + HEADER_BYTES + scales_bytes(c, v->n);
    uint8_t *scales = relative(c) ? dst + HEADER_BYTES : NULL;
    assert(v->first == 0 && v->count == v->n);
    if (v->n == 0)
        return 0;
    memcpy(dst, &header, HEADER_BYTES);
    for (size_t b = 0; b < buckets_of(c, v->n); b++)
        at = encode_bucket(c, v, b, scales, at);
    return (size_t)(at - dst);
}

size_t trib_bounded_encode(const struct trib_codec *c, const struct trib_encode *in,
                     uint8_t *dst)
{
    const struct trib_values v = {
        .x = in->x, .n = in->n, .count = in->n, .agreed = in->agreed};
    return encode_word(c, &v, dst);
}

/* ---- reading an encoded chunk ---------------------------------------------------- */

bool trib_bounded_open(const struct trib_codec *c, const struct trib_encoded *w,
                       size_t n, struct trib_bounded_reader *r_out)
{
    const size_t front = HEADER_BYTES + scales_bytes(c, n);
    if (w->len < front)
        return false;
    *r_out = (struct trib_bounded_reader){
        .at = w->src + front,
        .end = w->src + w->len,
        .scales = relative(c) ? w->src + HEADER_BYTES : NULL};
    memcpy(&r_out->header, w->src, HEADER_BYTES);
    r_out->part =
        !r_out->header.divisor && trib_bounded_is_part(c, r_out->header.contributions);
    return r_out->header.contributions > 0 &&
           r_out->header.contributions <= c->ranks &&
           r_out->header.divisor <= c->ranks;
}

static const uint8_t *take(struct trib_bounded_reader *r, size_t bytes)
{
    const uint8_t *at = r->at;
    if ((size_t)(r->end - at) < bytes)
        return NULL;
    r->at += bytes;
    return at;
}

static bool read_integers(struct trib_bounded_reader *r, size_t m,
                          struct trib_bounded_bucket *out)
{
    const size_t blocks = blocks_of(m);
    const uint8_t *from = take(r, BEFORE_BYTES + blocks);
    size_t words = 0;
    if (!from)
        return false;
    memcpy(&out->before, from, BEFORE_BYTES);
    memcpy(out->heads, from + BEFORE_BYTES, blocks);
    for (size_t b = 0; b < blocks; b++) {
        if (out->heads[b] >= TRIB_BOUNDED_HEADS)
            return false;
        words += trib_bounded_words(out->heads[b]);
    }
    out->content = take(r, words * sizeof(uint32_t));
    return out->content;
}

bool trib_bounded_next(struct trib_bounded_reader *r, size_t m,
                       struct trib_bounded_bucket *out)
{
    const uint8_t *form = take(r, FORM_BYTES);
    if (!form)
        return false;
    const uint8_t read = *form;
    out->form = (enum trib_bounded_form)read;
    if (read == TRIB_BOUNDED_INTEGERS)
        return read_integers(r, m, out);
    if (read == TRIB_BOUNDED_FLOATS)
        return (out->content = take(r, m * sizeof(float)));
    if (read == TRIB_BOUNDED_DOUBLES && r->part)
        return (out->content = take(r, m * sizeof(double)));
    return read == TRIB_BOUNDED_NOTHING;
}

/* ---- decode ---------------------------------------------------------------------- */

static void put_floats(const struct trib_codec *c, const struct trib_decode *d,
                       const struct trib_bounded_bucket *b, float *x, size_t m)
{
    float values[TRIB_BOUNDED_BUCKET_MAX];
    double value;
    memset(values, 0, m * sizeof *values);
    if (b->form == TRIB_BOUNDED_FLOATS)
        memcpy(values, b->content, m * sizeof *values);
    for (size_t i = 0; b->form == TRIB_BOUNDED_DOUBLES && i < m; i++) {
        memcpy(&value, b->content + i * sizeof value, sizeof value);
        values[i] = (float)value;
    }
    if (d->overwrite)
        memcpy(x, values, m * sizeof *x);
    else
        c->kernels->axpy_f32(x, values, d->weight, m);
}

static void put_integers(const struct trib_codec *c, const struct trib_decode *d,
                         const struct trib_bounded_bucket *b, double step, float *x,
                         size_t m)
{
    int32_t q[TRIB_BOUNDED_BUCKET_MAX];
    trib_bounded_integers(c, b, m, q);
    if (d->overwrite)
        c->kernels->bounded_values(x, q, m, step);
    else
        c->kernels->bounded_values_add(x, q, m, step, d->weight);
}

trib_status_t trib_bounded_decode(const struct trib_codec *c,
                                  const struct trib_decode *d)
{
    const struct trib_encoded word = {d->src, d->len};
    struct trib_bounded_reader r;
    if (d->n == 0)
        return d->len == 0 ? TRIB_OK : TRIB_ERR_CODEC;
    if (!trib_bounded_open(c, &word, d->n, &r))
        return TRIB_ERR_CODEC;
    const uint32_t divisor = r.header.divisor > 1 ? r.header.divisor : 1;
    for (size_t i = 0, b = 0; i < d->n; i += bucket_of(c), b++) {
        const size_t m = trib_bounded_bucket_length(c, d->n, i);
        struct trib_bounded_bucket bucket;
        struct trib_bounded_grid grid;
        if (!trib_bounded_next(&r, m, &bucket))
            return TRIB_ERR_CODEC;
        if (bucket.form != TRIB_BOUNDED_INTEGERS)
            put_floats(c, d, &bucket, d->x + i, m);
        else if (trib_bounded_grid_of(c, r.scales, b, &grid))
            put_integers(c, d, &bucket, grid.step / divisor, d->x + i, m);
        else
            return TRIB_ERR_CODEC;
    }
    return r.at == r.end ? TRIB_OK : TRIB_ERR_CODEC;
}

/* ---- the stage ------------------------------------------------------------------- */

static void stage_encode(const struct trib_codec *c, const struct trib_values *v,
                         uint8_t *dst)
{
    (void)encode_word(c, v, dst);
}

static void stage_decode(const struct trib_codec *c, const struct trib_code *code,
                         float *x)
{
    const struct trib_decode d = {code->src, code->len, x, code->n,
                                  1, true, false, NULL};
    (void)trib_bounded_decode(c, &d);
}

static void stage_decode_add(const struct trib_codec *c, const struct trib_code *code,
                             float weight, float *acc)
{
    const struct trib_decode d = {code->src, code->len, acc, code->n, weight,
                                  false, false, NULL};
    (void)trib_bounded_decode(c, &d);
}

const struct trib_quantise trib_quantise_bounded = {
    .name = "bounded",
    .params = TRIB_PARAM_BIT(ABS) | TRIB_PARAM_BIT(REL) | TRIB_PARAM_BIT(BUCKET),
    .bytes = trib_bounded_whole_bound,
    .encode = stage_encode,
    .decode = stage_decode,
    .decode_add = stage_decode_add,
    .delta = trib_delta_none, /* the error bound is absolute */
    .bounds = true,
};
