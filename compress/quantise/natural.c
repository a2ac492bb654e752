/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Magnitudes rounded to powers of two: natural compression and natural dithering. A
 * code is a sign and a level; level 0 is zero, and each level from the second on is
 * twice the previous one.
 *
 *     paper      Horváth, Ho, Horváth, Sahu, Canini, Richtárik: "Natural compression
 *                for distributed deep learning", arXiv 1905.10988
 *     wire       buckets.h; code: the highest bit is the sign, the others the level
 *
 * natural
 *     equation   |x_i| from 2^e to 2^(e+1) becomes the upper with probability |x_i|
 *                2^-e - 1, else the lower; round=nearest: the nearer
 *     code       8 bits; head: the biased exponent of level 127, one byte: one more
 *                than the largest of the bucket, at most 254; 0: all are zero; 255: the
 *                bucket has NaN or Inf
 *     bias       none; E|C(x) - x|^2 <= |x|^2 / 8, so delta = 8/7. Elements below
 *                2^-125 of the bucket's largest become 0, elements above 2^127 become
 *                2^127. round=nearest: |C(x) - x|^2 <= |x|^2 / 9, so delta = 9/8;
 *                biased
 *
 * dither with base 2 (others: dither.c)
 *     equation   levels 0, 2^(1-s), …, 1/2, 1 of the norm, s = 2^(bits-1) - 1; |x_i| /
 *                norm is rounded stochastically, without bias, to one of the two
 *                neighbouring levels
 *     code       `bits` bits; head: the norm, f32, l2 or max of the bucket
 *     bias       none; E|C(x) - x|^2 <= w |x|^2, w = 1/8 + q min(1, q), q =
 *                sqrt(bucket) 2^(1-s); delta = 1 / (1 - w) if w < 1
 *     small      norms below 2^-100 count as 2^-100: unbiased, but not within w
 *
 * both
 *     random     keys from rng_keys.h; kernels.h derives noise from them
 *     NaN, Inf   a bucket with either decodes to NaN entirely
 *     state      none
 */
#include <math.h>
#include <string.h>

#include "compress/quantise/buckets.h"

enum { NATURAL_BITS = 8, BIAS = 127, EXPONENT_MAX = 254, EXPONENT_NAN = 255 };

static struct trib_natural_args natural_args_of(int bits)
{
    const uint32_t sign = 1u << (bits - 1);
    return (struct trib_natural_args){.scale = 1.0f,
                                 .norm = 1.0f,
                                 .highest = (int32_t)sign - 1,
                                 .sign = sign,
                                 .random_mask = UINT32_MAX};
}

TRIB_BUCKETS_KERNELS(natural, octaves)

/* ---- natural -------------------------------------------------------------------- */

static union trib_bucket_params natural_params(const struct trib_codec *c)
{
    union trib_bucket_params p = {.octaves = natural_args_of(NATURAL_BITS)};
    if (c->param[TRIB_PARAM_ROUND] == TRIB_ROUND_NEAREST) {
        p.octaves.random_mask = 0;
        p.octaves.fixed = 1u << 31;
    }
    return p;
}

/* Level `highest` is the power of two with the head's biased exponent. */
static void natural_open(const uint8_t *head, union trib_bucket_params *p)
{
    p->octaves.base = (int32_t)*head - p->octaves.highest;
    p->octaves.norm = *head == EXPONENT_NAN ? NAN : 1.0f;
}

static bool natural_measure(const struct trib_codec *c, const float *x, size_t n,
                            uint32_t magnitude, union trib_bucket_params *p,
                            uint8_t *head_out)
{
    const uint32_t exponent = magnitude >> 23;
    (void)c, (void)x, (void)n;
    *head_out = (uint8_t)(exponent < EXPONENT_MAX ? exponent + 1 : exponent);
    if (magnitude == 0)
        *head_out = 0;
    natural_open(head_out, p);
    return magnitude && exponent < EXPONENT_NAN;
}

static double natural_delta(const struct trib_codec *c)
{
    return c->param[TRIB_PARAM_ROUND] == TRIB_ROUND_NEAREST ? 9.0 / 8 : 8.0 / 7;
}

static double natural_rounding(const struct trib_codec *c)
{
    return c->param[TRIB_PARAM_ROUND] == TRIB_ROUND_NEAREST ? 1.0 / 3 : 0;
}

static const struct trib_bucketing natural = {
    .head = 1,
    .bits = NATURAL_BITS,
    .params = natural_params,
    .measure = natural_measure,
    .encode = encode,
    .open = natural_open,
    .decode = decode,
    .add = add,
};

const struct trib_quantise trib_quantise_natural = {
    .name = "natural",
    .params = TRIB_PARAM_BIT(BUCKET) | TRIB_PARAM_BIT(ROUND) | TRIB_PARAM_BIT(PACK),
    TRIB_BUCKETS_SLOTS(natural),
    .delta = natural_delta,
    .rounding = natural_rounding,
};

/* ---- dither --------------------------------------------------------------------- */

static union trib_bucket_params dither_params(const struct trib_codec *c)
{
    union trib_bucket_params p = {
        .octaves = natural_args_of((int)c->param[TRIB_PARAM_BITS])};
    p.octaves.base = BIAS - p.octaves.highest;
    p.octaves.steps = ldexpf(1.0f, p.octaves.highest - 1);
    return p;
}

static bool dither_measure(const struct trib_codec *c, const float *x, size_t n,
                           uint32_t magnitude, union trib_bucket_params *p,
                           uint8_t *head_out)
{
    if (!trib_bucket_measure_norm(c, x, n, magnitude, &p->octaves.norm, head_out))
        return false;
    p->octaves.scale = trib_bucket_scale(p->octaves.norm); /* the norm itself is level
                                                            * s */
    return true;
}

static void dither_open(const uint8_t *head, union trib_bucket_params *p)
{
    memcpy(&p->octaves.norm, head, sizeof p->octaves.norm);
}

static double dither_error(const struct trib_codec *c)
{
    const int s = dither_params(c).octaves.highest;
    const double bucket = c->param[TRIB_PARAM_BUCKET],
                 q = ldexp(sqrt(bucket), 1 - s);

    return c->param[TRIB_PARAM_NORM] == TRIB_NORM_MAX
               ? fmax(1.0 / 8, trib_grid_error(bucket, ldexp(1, s - 1)))
               : 1.0 / 8 + q * fmin(1, q);
}

static const struct trib_bucketing dither = {
    .head = sizeof(float),
    .params = dither_params,
    .measure = dither_measure,
    .encode = encode,
    .open = dither_open,
    .decode = decode,
    .add = add,
};

/* Bases other than 2 have separate kernels. */
static const struct trib_quantise *dither_resolve(struct trib_codec *c,
                                                  const char **refusal_out)
{
    if (c->param[TRIB_PARAM_BASE] == 2)
        return &trib_quantise_dither;
    *refusal_out = trib_dither_refusal(c);
    if (!*refusal_out)
        trib_dither_prepare(c);
    return &trib_quantise_dither_table;
}

const struct trib_quantise trib_quantise_dither = {
    .name = "dither",
    .params = TRIB_PARAM_BIT(BASE) | TRIB_PARAM_BIT(BITS) | TRIB_PARAM_BIT(BUCKET) |
              TRIB_PARAM_BIT(NORM) | TRIB_PARAM_BIT(PACK),
    .resolve = dither_resolve,
    TRIB_BUCKETS_SLOTS(dither),
    .error = dither_error,
};
