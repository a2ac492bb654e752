/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One bit per element: its sign.
 *
 *     wire       buckets.h; code: 1 if the sign bit is set (also for -0)
 *
 * onebit: 1-bit SGD
 *     paper      Seide, Fu, Droppo, Li, Yu, Interspeech 2014
 *     equation   the mean of the bucket's elements without sign bit, or of those with
 *                it; 0 if there are none. So sum C(x) = sum x in each bucket
 *     head       both means, f32
 *
 * efsign: EF-signSGD
 *     paper      Karimireddy, Rebjock, Stich, Jaggi, ICML 2019
 *     equation   C(x)_i = sign(x_i) |x|_1 / n, n the elements of the bucket
 *     head       |x|_1 / n, f32
 *
 * magnitude: for values with equal magnitudes, when the selection sends no others
 * (adacomp.c)
 *     head       the largest magnitude, f32; there is one bucket
 *
 * all
 *     bias       |C(x) - x|^2 <= |x|^2 - |x|_1^2 / n, with equality for efsign, and
 *                |x|_1 >= |x|: so delta is at most the bucket
 *     NaN, Inf   a bucket with either decodes to NaN entirely
 *     state      none here; error feedback is on by default
 */
#include <math.h>
#include <string.h>

#include "compress/quantise/buckets.h"

static union trib_bucket_params params(const struct trib_codec *c)
{
    (void)c;
    return (union trib_bucket_params){.pair = {.weight = 1.0f}};
}

/* Sum finite elements by sign, with enough precision for any magnitude. */
static void sums_of(const struct trib_kernels *k, const float *x, size_t n,
                    double *positive_out, double *negative_out, size_t *n_negative_out)
{
    struct trib_sums s;
    k->sums_by_sign(x, n, &s);
    *positive_out = (double)s.positive;
    *negative_out = (double)s.negative;
    *n_negative_out = s.n_negative;
    if (isfinite(s.positive) && isfinite(s.negative))
        return;
    *positive_out = *negative_out = 0; /* the sums left the range of f32 */
    for (size_t i = 0; i < n; i++)
        *(signbit(x[i]) ? negative_out : positive_out) += (double)x[i];
}

static void encode(const struct trib_kernels *k, uint8_t *codes, const float *x,
                   size_t n, const uint32_t keys[2], union trib_bucket_params *p)
{
    (void)keys, (void)p;
    k->signs_encode(codes, x, n);
}

static void decode(const struct trib_kernels *k, float *x, const uint8_t *codes,
                   size_t n, const union trib_bucket_params *p)
{
    k->pair_decode(x, codes, n, &p->pair);
}

static void add(const struct trib_kernels *k, float *acc, const uint8_t *codes,
                size_t n, float weight, union trib_bucket_params *p)
{
    p->pair.weight = weight;
    k->pair_add(acc, codes, n, &p->pair);
}

static double delta(const struct trib_codec *c)
{
    return c->param[TRIB_PARAM_BUCKET];
}

/* ---- onebit --------------------------------------------------------------------- */

static bool means_measure(const struct trib_codec *c, const float *x, size_t n,
                          uint32_t magnitude, union trib_bucket_params *p,
                          uint8_t *head_out)
{
    const bool finite = magnitude < 0x7f800000u;
    float *mean = p->pair.value;
    double positive, negative;
    size_t n_negative;
    mean[0] = mean[1] = finite ? 0.0f : NAN;
    if (magnitude && finite) {
        sums_of(c->kernels, x, n, &positive, &negative, &n_negative);
        if (n_negative < n)
            mean[0] = (float)(positive / (double)(n - n_negative));
        if (n_negative)
            mean[1] = (float)(negative / (double)n_negative);
    }
    memcpy(head_out, mean, sizeof p->pair.value);
    return magnitude && finite;
}

static void means_open(const uint8_t *head, union trib_bucket_params *p)
{
    memcpy(p->pair.value, head, sizeof p->pair.value);
}

static const struct trib_bucketing means = {
    .head = 2 * sizeof(float),
    .bits = 1,
    .params = params,
    .measure = means_measure,
    .encode = encode,
    .open = means_open,
    .decode = decode,
    .add = add,
};

const struct trib_quantise trib_quantise_means = {
    .name = "means",
    .params = TRIB_PARAM_BIT(BUCKET),
    TRIB_BUCKETS_SLOTS(means),
    .delta = delta,
};

/* ---- efsign --------------------------------------------------------------------- */

static void sign_open(const uint8_t *head, union trib_bucket_params *p)
{
    memcpy(p->pair.value, head, sizeof *p->pair.value);
    p->pair.value[1] = -p->pair.value[0];
}

static bool sign_measure(const struct trib_codec *c, const float *x, size_t n,
                         uint32_t magnitude, union trib_bucket_params *p,
                         uint8_t *head_out)
{
    const bool finite = magnitude < 0x7f800000u;
    float scale = finite ? 0.0f : NAN;
    double positive, negative;
    size_t n_negative;
    if (magnitude && finite) {
        sums_of(c->kernels, x, n, &positive, &negative, &n_negative);
        scale = (float)((positive - negative) / (double)n);
    }
    memcpy(head_out, &scale, sizeof scale);
    sign_open(head_out, p);
    return magnitude && finite;
}

static const struct trib_bucketing sign = {
    .head = sizeof(float),
    .bits = 1,
    .params = params,
    .measure = sign_measure,
    .encode = encode,
    .open = sign_open,
    .decode = decode,
    .add = add,
};

const struct trib_quantise trib_quantise_sign = {
    .name = "sign",
    .params = TRIB_PARAM_BIT(BUCKET),
    TRIB_BUCKETS_SLOTS(sign),
    .delta = delta,
};

/* ---- magnitude ------------------------------------------------------------------ */

static bool magnitude_measure(const struct trib_codec *c, const float *x, size_t n,
                              uint32_t magnitude, union trib_bucket_params *p,
                              uint8_t *head_out)
{
    (void)c, (void)x, (void)n;
    memcpy(head_out, &magnitude, sizeof magnitude);
    sign_open(head_out, p);
    return magnitude && magnitude < 0x7f800000u;
}

/* at most the bin + 1: an element is sent as the mean of the bins' largest */
static double magnitude_error(const struct trib_codec *c)
{
    return c->param[TRIB_PARAM_BIN] + 1;
}

static const struct trib_bucketing magnitude = {
    .head = sizeof(float),
    .bits = 1,
    .undivided = true,
    .params = params,
    .measure = magnitude_measure,
    .encode = encode,
    .open = sign_open,
    .decode = decode,
    .add = add,
};

const struct trib_quantise trib_quantise_magnitude = {
    .name = "magnitude",
    TRIB_BUCKETS_SLOTS(magnitude),
    .delta = trib_delta_exact,
    .error = magnitude_error,
};
