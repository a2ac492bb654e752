/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 8-bit floats with a scale per bucket, which makes them independent of the magnitude.
 *
 *     paper      Micikevicius et al.: "FP8 formats for deep learning", arXiv
 *                2209.05433; Open Compute Project: "8-bit floating point
 *                specification", 2023, and "Microscaling formats specification", 2023,
 *                the source of the scale
 *     equation   C(x)_i = 2^e r(x_i 2^-e); e is the smallest that brings the bucket's
 *                largest into the range of the format: 448 (e4m3) or 57344 (e5m2). r
 *                rounds to nearest even; round=random: stochastically, without bias, to
 *                one of the two neighbours
 *     wire       buckets.h; head: e + 127, one byte; 255: the bucket has NaN or Inf;
 *                code: 8 bits, as in OCP
 *     bias       random: none. With m bits of mantissa, 3 or 2, and r = 1 + 2^-m:
 *                random   E|C(x) - x|^2 <= w |x|^2, w = (r - 1)^2 / 4r + small, or
 *                         1/288, 1/80
 *                nearest  |C(x) - x|^2 <= w |x|^2, w = ((r - 1) / (r + 1))^2 + small,
 *                         or 1/289, 1/81; biased
 *                small, from denormals:
 *                         bucket / 4 (their distance / half the largest)^2
 *                delta = 1 / (1 - w)
 *     default    e4m3, bucket 512: e5m2 has 4 times the error |C(x) - x|^2 of e4m3 for
 *                the same bytes. A bucket of 32 takes 3 % more bytes than one of 512
 *                for the same error, as the largest of a bucket is rarely 2^14 times
 *                the others
 *     large      magnitudes above 1.75 2^127 saturate
 *     small      e is at least -127: below it elements are multiples of 2^-136 (e4m3),
 *                2^-143
 *     random     keys from rng_keys.h; kernels.h derives u from them
 *     NaN, Inf   a bucket with either decodes to NaN entirely
 *     state      none
 */
#include <math.h>
#include <string.h>

#include "compress/quantise/buckets.h"

enum { HEAD_BIAS = 127, HEAD_NAN = 255, FRACTION = 0x7fffff };

/* The largest number of a format: its exponent; its mantissa is 1.75 in both
 * formats. */
enum { E4M3_EXPONENT = 8, E5M2_EXPONENT = 15, FRACTION_MAX = 0x600000 };
enum { LARGEST = 0x7f000000 }; /* the bits of 2^127 */

static bool is_e5m2(const struct trib_codec *c)
{
    return c->param[TRIB_PARAM_FORMAT] == TRIB_FORMAT_E5M2;
}

static union trib_bucket_params params(const struct trib_codec *c)
{
    return (union trib_bucket_params){
        .f8 = {.e5m2 = is_e5m2(c),
               .random = c->param[TRIB_PARAM_ROUND] == TRIB_ROUND_RANDOM}};
}

static void open_head(const uint8_t *head, union trib_bucket_params *p)
{
    p->f8.norm = *head == HEAD_NAN ? NAN : ldexpf(1.0f, *head - HEAD_BIAS);
}

static bool measure(const struct trib_codec *c, const float *x, size_t n,
                    uint32_t magnitude, union trib_bucket_params *p, uint8_t *head_out)
{
    const int highest = is_e5m2(c) ? E5M2_EXPONENT : E4M3_EXPONENT;
    /* saturate from 2^127: rounding up would yield Inf */
    const int above = (magnitude & FRACTION) > FRACTION_MAX && magnitude < LARGEST;
    const bool finite = magnitude < 0x7f800000u;
    /* biased like the magnitude's exponent; 0 for denormals */
    const int head = (int)(magnitude >> 23) + above - highest;
    (void)x, (void)n;
    *head_out = (uint8_t)(!finite ? HEAD_NAN : head > 0 ? head : 0);
    p->f8.scale = ldexpf(1.0f, HEAD_BIAS - *head_out);
    return magnitude && finite;
}

TRIB_BUCKETS_KERNELS(f8, f8)

static double delta(const struct trib_codec *c)
{
    const double r = is_e5m2(c) ? 1.25 : 1.125, step = is_e5m2(c) ? 0x1p-16 : 0x1p-9;
    const double half = is_e5m2(c) ? 28672 : 224;
    const double near = (r - 1) / (r + 1), random = (r - 1) * (r - 1) / (4 * r);
    const double small =
        c->param[TRIB_PARAM_BUCKET] / 4 * (step / half) * (step / half);
    const bool is_random = c->param[TRIB_PARAM_ROUND] == TRIB_ROUND_RANDOM;
    return 1 / (1 - (is_random ? random : near * near) - small);
}

static const struct trib_bucketing f8 = {
    .head = 1,
    .bits = 8,
    .params = params,
    .measure = measure,
    .encode = encode,
    .open = open_head,
    .decode = decode,
    .add = add,
};

const struct trib_quantise trib_quantise_f8 = {
    .name = "f8",
    .params = TRIB_PARAM_BIT(FORMAT) | TRIB_PARAM_BIT(BUCKET) | TRIB_PARAM_BIT(ROUND) |
              TRIB_PARAM_BIT(PACK),
    .nearest = true,
    TRIB_BUCKETS_SLOTS(f8),
    .delta = delta,
};
