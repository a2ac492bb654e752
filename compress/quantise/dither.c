/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exponential dithering: dither with a base other than 2 (base 2: natural.c).
 *
 *     paper      Beznosikov, Horváth, Richtárik, Safaryan: "On biased compression for
 *                distributed learning", arXiv 2002.12410
 *     equation   levels 0, b^(1-s), …, 1/b, 1 of the norm, b = base, s = 2^(bits-1) -
 *                1; |x_i| / norm is rounded stochastically, without bias, to one of the
 *                two neighbouring levels
 *     wire       buckets.h; head: the norm, f32, l2 or max of the bucket; code: `bits`
 *                bits, the highest the sign, the others the level
 *     bias       none (u is a multiple of 2^-24); E|C(x) - x|^2 <= w |x|^2, w = (b +
 *                1/b - 2) / 4 + q min(1, q), q = sqrt(bucket) b^(1-s); delta = 1 / (1 -
 *                w) if w < 1
 *     levels     computed by dividing 1 by b in double precision, then rounded to f32:
 *                unlike pow, the same on every machine
 *     small      norms below 2^-100 count as 2^-100: unbiased, but not within w
 *     random     keys from rng_keys.h; kernels.h derives u from them
 *     NaN, Inf   a bucket with either decodes to NaN entirely
 *     state      none
 */
#include <math.h>
#include <string.h>

#include "compress/quantise/buckets.h"

#define LOWEST_LEVEL 0x1p-100
/* Slack of the guessed level number, larger than the f32 rounding. */
#define GUESS_SLACK 0x1p-8

static int highest_of(const struct trib_codec *c)
{
    return (1 << ((int)c->param[TRIB_PARAM_BITS] - 1)) - 1;
}

const char *trib_dither_refusal(const struct trib_codec *c)
{
    if (pow(c->param[TRIB_PARAM_BASE], 1 - highest_of(c)) >= LOWEST_LEVEL)
        return NULL;
    return "levels below 2^-100 of the norm; use fewer bits or a base nearer to 1";
}

void trib_dither_prepare(struct trib_codec *c)
{
    const int highest = highest_of(c);
    double level = 1;
    for (int k = highest; k > 0; k--, level /= c->param[TRIB_PARAM_BASE])
        c->level[k] = (float)level;
    c->level[0] = 0;
    for (int k = 0; k < highest; k++)
        c->per_gap[k] = (float)(1 / ((double)c->level[k + 1] - (double)c->level[k]));
    c->per_gap[highest] = 0;
}

static union trib_bucket_params params(const struct trib_codec *c)
{
    const double octaves = log2(c->param[TRIB_PARAM_BASE]);
    const int highest = highest_of(c);
    return (union trib_bucket_params){
        .powers = {.level = c->level,
                   .per_gap = c->per_gap,
                   .factor = (float)(0x1p-23 / octaves),
                   .offset = (float)(highest - 127 / octaves - GUESS_SLACK),
                   .highest = highest,
                   .sign = (uint32_t)highest + 1}};
}

static bool measure(const struct trib_codec *c, const float *x, size_t n,
                    uint32_t magnitude, union trib_bucket_params *p, uint8_t *head_out)
{
    if (!trib_bucket_measure_norm(c, x, n, magnitude, &p->powers.norm, head_out))
        return false;
    p->powers.scale = trib_bucket_scale(p->powers.norm);
    return true;
}

TRIB_BUCKETS_KERNELS(dither, powers)

static void open_head(const uint8_t *head, union trib_bucket_params *p)
{
    memcpy(&p->powers.norm, head, sizeof p->powers.norm);
}

static double error(const struct trib_codec *c)
{
    const double b = c->param[TRIB_PARAM_BASE];
    const double bucket = c->param[TRIB_PARAM_BUCKET],
                 lowest = pow(b, 1 - highest_of(c)), q = sqrt(bucket) * lowest,
                 among = (b + 1 / b - 2) / 4;

    /* below the lowest level it is a grid of 1 / lowest levels */
    return c->param[TRIB_PARAM_NORM] == TRIB_NORM_MAX
               ? fmax(among, trib_grid_error(bucket, 1 / lowest))
               : among + q * fmin(1, q);
}

static const struct trib_bucketing powers = {
    .head = sizeof(float),
    .params = params,
    .measure = measure,
    .encode = encode,
    .open = open_head,
    .decode = decode,
    .add = add,
};

const struct trib_quantise trib_quantise_dither_table = {
    .name = "dither",
    .params = TRIB_PARAM_BIT(BASE) | TRIB_PARAM_BIT(BITS) | TRIB_PARAM_BIT(BUCKET) |
              TRIB_PARAM_BIT(NORM) |
              TRIB_PARAM_BIT(PACK),
    TRIB_BUCKETS_SLOTS(powers),
    .error = error,
};
