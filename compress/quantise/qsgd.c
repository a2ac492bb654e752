/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Evenly spaced levels: QSGD and TernGrad. Each bucket has a norm, and each element a
 * sign and one of s + 1 levels, rounded stochastically and without bias.
 *
 * qsgd
 *     paper      Alistarh, Grubic, Li, Tomioka, Vojnovic, NeurIPS 2017, eq. (3.1)
 *     equation   y = |x_i| s / norm;  C(x)_i = sign(x_i) norm floor(y + u) / s, u
 *                uniform in [0, 1);  s = 2^(bits-1) - 1; norm = l2 or max of the bucket
 *     wire       buckets.h; head: the norm, f32; code: bits 0 … bits-2 the level, bit
 *                bits-1 the sign
 *     bias       none (u is a multiple of 2^-24: below 2^-24 of a level rounds down);
 *                E|C(x) - x|^2 <= w |x|^2 with w = min(bucket / 4s^2, sqrt(bucket) /
 *                s), for max only the first; delta = 1 / (1 - w) if w < 1
 *     small      norms below 2^-100 count as 2^-100: unbiased, but not within w
 *
 * terngrad
 *     paper      Wen, Xu, Yan, Wu, Wang, Chen, Li, NeurIPS 2017
 *     equation   s = 1; the norm is the largest magnitude, at most `clip` times the
 *                root mean square of the bucket. (Gradients have a mean near 0, so this
 *                is about the paper's standard deviation.) Larger elements are clipped
 *                to the norm
 *     wire       as qsgd with 2 bits
 *     bias       none except for clipping; E|C(x) - x|^2 <= norm |x|_1
 *
 * both
 *     random     keys from rng_keys.h; kernels.h derives u from them
 *     NaN, Inf   a bucket with either has the norm NaN and decodes to NaN entirely
 *     state      none
 */
#include <math.h>
#include <string.h>

#include "compress/quantise/buckets.h"

static union trib_bucket_params params(const struct trib_codec *c)
{
    const uint32_t sign = 1u << (trib_buckets_layout(c).bits - 1);
    return (union trib_bucket_params){.levels = {.highest = sign - 1, .sign = sign}};
}

TRIB_BUCKETS_KERNELS(qsgd, levels)

static void open_head(const uint8_t *head, union trib_bucket_params *p)
{
    memcpy(&p->levels.norm, head, sizeof p->levels.norm);
}

/* ---- qsgd ----------------------------------------------------------------------- */

static bool qsgd_measure(const struct trib_codec *c, const float *x, size_t n,
                    uint32_t magnitude, union trib_bucket_params *p, uint8_t *head_out)
{
    struct trib_qsgd_args *l = &p->levels;
    if (!trib_bucket_measure_norm(c, x, n, magnitude, &l->norm, head_out))
        return false;
    l->scale = (float)l->highest / l->norm;
    return true;
}

static double qsgd_error(const struct trib_codec *c)
{
    const double s = params(c).levels.highest, bucket = c->param[TRIB_PARAM_BUCKET];

    return c->param[TRIB_PARAM_NORM] == TRIB_NORM_MAX
               ? trib_grid_error(bucket, s)
               : fmin(bucket / (4 * s * s), sqrt(bucket) / s);
}

static const struct trib_bucketing qsgd = {
    .head = sizeof(float),
    .params = params,
    .measure = qsgd_measure,
    .encode = encode,
    .open = open_head,
    .decode = decode,
    .add = add,
};

const struct trib_quantise trib_quantise_qsgd = {
    .name = "qsgd",
    .params = TRIB_PARAM_BIT(BITS) | TRIB_PARAM_BIT(BUCKET) | TRIB_PARAM_BIT(NORM) |
              TRIB_PARAM_BIT(SHARED) | TRIB_PARAM_BIT(PACK),
    .counts = true,
    TRIB_BUCKETS_SLOTS(qsgd),
    .error = qsgd_error,
    .shared = &trib_quantise_qsgd_shared,
};

/* ---- terngrad ------------------------------------------------------------------- */

static bool ternary_measure(const struct trib_codec *c, const float *x, size_t n,
                            uint32_t magnitude, union trib_bucket_params *p,
                            uint8_t *head_out)
{
    struct trib_qsgd_args *l = &p->levels;
    if (!trib_bucket_measure_norm(c, x, n, magnitude, &l->norm, head_out))
        return false;
    l->norm = trib_bucket_clip(c, x, n, l->norm);
    memcpy(head_out, &l->norm, sizeof l->norm);
    l->scale = 1.0f / l->norm;
    return true;
}

static const struct trib_bucketing ternary = {
    .head = sizeof(float),
    .bits = 2,
    .params = params,
    .measure = ternary_measure,
    .encode = encode,
    .open = open_head,
    .decode = decode,
    .add = add,
};

const struct trib_quantise trib_quantise_ternary = {
    .name = "ternary",
    .params = TRIB_PARAM_BIT(BUCKET) | TRIB_PARAM_BIT(CLIP) | TRIB_PARAM_BIT(SHARED) |
              TRIB_PARAM_BIT(PACK),
    .counts = true,
    TRIB_BUCKETS_SLOTS(ternary),
    .error = trib_bucket_clip_error,
    .grows = true,
    .shared = &trib_quantise_ternary_shared,
};
