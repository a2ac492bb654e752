/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * THC: blocks are rotated until their elements are about normally distributed, then
 * rounded to 16 points of a grid, placed where such elements are likely. The points of
 * several ranks add.
 *
 *     paper      Li, Ben Basat, Vargaftik, Lao, Xu, Mitzenmacher, Yu, NSDI 2024
 *     equation   z = R x; d the largest root mean square of the block on any rank; q =
 *                z / d clipped to [-t, t] and rounded stochastically to a neighbour in
 *                the table; C(x) = R^-1 d q
 *     rotation   rotated.h
 *     wire       packed_ints.h; head: d; symbol: 4 bits, which add 0 … 30
 *     bias       none except for the fraction p of elements beyond t; error feedback,
 *                on by default, sends their residual later
 *     large      elements above FLT_MAX / 2^13 count as Inf, since sums of a block must
 *                fit
 *     small      if d is below 2^-100 the block decodes to zeros
 *     NaN, Inf   a block with either on any rank decodes to NaN entirely
 *     state      none
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "compress/quantise/buckets.h"
#include "compress/quantise/packed_ints.h"
#include "compress/quantise/thc_table.h"

enum { BITS = 4 };

static const struct trib_thc_table *table_of(const struct trib_codec *c)
{
    return trib_thc_table(TRIB_THC_LOG2_P_MIN + (int)c->param[TRIB_PARAM_TAIL]);
}

static struct trib_packed_ints lanes(const struct trib_codec *c)
{
    const struct trib_thc_table *t = table_of(c);
    return (struct trib_packed_ints){.bucket = (size_t)c->param[TRIB_PARAM_ROTATION],
                               .heads = 1,
                               .bits = BITS,
                               .most = t->highest,
                               .adds = t->value};
}

static void measure(const struct trib_codec *c, const float *x, size_t n,
                    float *head_out)
{
    const float squares = c->kernels->sum_squares(x, n);
    /* then the largest is in range too */
    if (squares > 0x1p-80f && squares <= FLT_MAX) {
        *head_out = (float)((double)sqrtf(squares) / sqrt((double)n));
        return;
    }
    const uint32_t magnitude = c->kernels->max_magnitude(x, n);
    float largest;
    memcpy(&largest, &magnitude, sizeof largest);
    if (!(largest <= FLT_MAX / 8192))
        *head_out = INFINITY;
    else
        *head_out = (float)((double)trib_bucket_l2(c, x, n) / sqrt((double)n));
}

/* g->scale passes the deviation to encode. None of the 16 points is 0, so blocks whose
 * deviation is too small for the kernel, or 0, must decode to zeros. */
static bool grid(const struct trib_codec *c, const float *head, uint32_t contributions,
                 struct trib_shared_scale_args *g)
{
    const struct trib_thc_table *t = table_of(c);
    const bool finite = *head >= 0 && *head <= FLT_MAX,
               none = *head < TRIB_SMALLEST_NORM;
    g->scale = *head;
    g->middle = contributions * t->highest / 2;
    g->unit = !finite ? NAN : none ? 0 : trib_thc_step(t, *head);
    g->base = 0;
    return finite && !none;
}

static void encode(const struct trib_codec *c, uint8_t *symbols, const float *x,
                   size_t n, const struct trib_shared_scale_args *g)
{
    struct trib_grid points;
    trib_thc_grid(table_of(c), g->scale, g->key, &points);
    c->kernels->grid_encode(symbols, x, n, &points);
}

static const struct trib_packed_ints_rule thc = {
    .layout = lanes,
    .measure = measure,
    .grid = grid,
    .encode = encode,
    /* rotation preserves the norm, so ranks need not rotate twice */
    .measures_unrotated = true,
};

/* Clipping is biased, so delta guarantees nothing. */
static double error(const struct trib_codec *c)
{
    return (double)table_of(c)->error;
}

const struct trib_quantise trib_quantise_table = {
    .name = "table",
    .params = TRIB_PARAM_BIT(TAIL),
    TRIB_PACKED_INTS_SLOTS(thc),
    .delta = trib_delta_none,
    .error = error,
};
