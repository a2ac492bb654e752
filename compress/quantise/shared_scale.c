/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Integers on a grid shared by all ranks: encodings add without decoding
 * (packed_ints.h).
 *
 * int4, int8, int16
 *     paper      Pipe-SGD (Li, Yu, Li, Avestimehr, Kim, Schwing, NeurIPS 2018) sums 8
 *                bits this way
 *     equation   L = 2^(bits-1) - 1; M the largest magnitude of the bucket on any rank;
 *                q = floor(x L / M + u); C(x) = q M / L; u uniform in [0, 1), or 1/2
 *     wire       packed_ints.h; head: M; symbol: q + L
 *     result     requantised: the finished sum is y = q' M' / L, with M' its own
 *                largest magnitude and q' rounded like q, so it is as wide as a
 *                contribution; else it is as wide as sums are
 *     bias       none; round=nearest: at most M / 2L per element
 *
 * qsgd and terngrad with shared=1
 *     equation   the same with their norms, the largest over the ranks; TernGrad's
 *                scaler sharing (Wen et al., NeurIPS 2017): L = 1, elements above the
 *                norm are clipped
 *
 * uniform-thc
 *     paper      Li, Ben Basat, Vargaftik, Lao, Xu, Mitzenmacher, Yu, NSDI 2024: THC
 *     equation   m the smallest, M the largest element of the bucket on any rank; q =
 *                floor((x - m) (2^bits - 1) / (M - m) + u)
 *     wire       packed_ints.h; head: M, -m; symbol: q
 *     bias       none
 *     large      if M - m, or M or -m times the ranks, exceeds FLT_MAX / 2, the bucket
 *                decodes to NaN
 *
 * signsgd
 *     paper      Bernstein, Wang, Azizzadenesheli, Anandkumar, ICML 2018, majority vote
 *     equation   sgn(sum over ranks of sgn(x)); sgn of 0 is 1 for one rank, and 0 for a
 *                tie
 *     wire       packed_ints.h; no head; symbol: 1 if the sign bit is set (also for -0)
 *     bias       biased, and not a contraction: error feedback is refused
 *
 * all
 *     random     keys from rng_keys.h; kernels.h derives u from them
 *     small      norms and ranges below 2^-100 count as 2^-100; uniform-thc: a bucket
 *                whose elements are below that on all ranks decodes to zeros, unless
 *                all are equal: otherwise most would decode to the smallest
 *     NaN, Inf   a bucket with either on any rank decodes to NaN entirely; signsgd
 *                takes the sign of both
 *     state      none
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "compress/quantise/buckets.h"
#include "compress/quantise/packed_ints.h"

static void set_rounding(const struct trib_codec *c, struct trib_shared_scale_args *g)
{
    const bool nearest = c->param[TRIB_PARAM_ROUND] == TRIB_ROUND_NEAREST;
    g->random_mask = nearest ? 0 : UINT32_MAX;
    g->fixed = nearest ? 1u << 31 : 0;
}

static int bits_of(const struct trib_codec *c)
{
    const int bits = c->stages.quantise->packed_ints->bits;
    return bits ? bits : (int)c->param[TRIB_PARAM_BITS];
}

/* ---- levels -L … L of a norm ----------------------------------------------------- */

static struct trib_packed_ints signed_lanes(const struct trib_codec *c)
{
    return (struct trib_packed_ints){.bucket = (size_t)c->param[TRIB_PARAM_BUCKET],
                                     .heads = 1,
                                     .bits = bits_of(c),
                                     .most = (1u << bits_of(c)) - 2};
}

static int32_t levels_of(const struct trib_codec *c)
{
    return (1 << (bits_of(c) - 1)) - 1;
}

static bool norm_grid(const struct trib_codec *c, const float *head,
                      uint32_t contributions, struct trib_shared_scale_args *g)
{
    const int32_t L = levels_of(c);
    const float norm = *head;
    const bool finite = norm <= FLT_MAX && norm >= 0; /* a head may have any bits */
    set_rounding(c, g);
    g->scale = (float)L / norm;
    g->shift = g->base = 0;
    g->low = (float)-L;
    g->high = (float)L;
    g->offset = (uint32_t)L;
    g->middle = contributions * (uint32_t)L;
    g->unit = finite ? norm / (float)L : NAN;
    if (g->unit * (float)L > FLT_MAX)
        g->unit = nextafterf(g->unit, 0);
    return finite && norm > 0;
}

static void head_of(const struct trib_codec *c, const float *x, size_t n,
                    uint32_t magnitude, float *head_out)
{
    uint8_t head[sizeof *head_out];
    (void)trib_bucket_measure_norm(c, x, n, magnitude, head_out, head);
    if (isnan(*head_out))
        *head_out = INFINITY;
}

static void measure_norm(const struct trib_codec *c, const float *x, size_t n,
                         float *head_out)
{
    head_of(c, x, n, c->kernels->max_magnitude(x, n), head_out);
}

static void measure_norm_added(const struct trib_codec *c, float *x, const float *more,
                               size_t n, float *head_out)
{
    head_of(c, x, n, c->kernels->add_max(x, more, n), head_out);
}

/* valid if the norm is that of x itself */
static double norm_error(const struct trib_codec *c)
{
    return trib_grid_error(c->param[TRIB_PARAM_BUCKET], levels_of(c));
}

static void encode(const struct trib_codec *c, uint8_t *symbols, const float *x,
                   size_t n, const struct trib_shared_scale_args *g)
{
    const struct trib_kernels *k = c->kernels;
    (bits_of(c) > 8 ? k->shared_scale_encode_u16 : k->shared_scale_encode)(symbols, x,
                                                                           n, g);
}

static void keep(const struct trib_codec *c, uint8_t *symbols, float *x, size_t n,
                 const struct trib_shared_scale_args *g)
{
    const struct trib_kernels *k = c->kernels;
    (bits_of(c) > 8 ? k->shared_scale_keep_u16 : k->shared_scale_keep)(symbols, x, n,
                                                                       g);
}

/* ---- int4, int8, int16 ---------------------------------------------------------- */

#define INTEGERS(BITS) \
    static const struct trib_packed_ints_rule int##BITS = {.bits = BITS, \
                                                           .layout = signed_lanes, \
                                                           .measure = measure_norm, \
                                                           .measure_added = \
                                                               measure_norm_added, \
                                                           .grid = norm_grid, \
                                                           .encode = encode, \
                                                           .keep = keep, \
                                                           .requantises = true}; \
    const struct trib_quantise trib_quantise_int##BITS = { \
        .name = "int" #BITS, \
        .params = \
            TRIB_PARAM_BIT(BUCKET) | TRIB_PARAM_BIT(ROUND) | TRIB_PARAM_BIT(RESULT), \
        TRIB_PACKED_INTS_SLOTS(int##BITS), \
        .error = norm_error}
INTEGERS(4);
INTEGERS(8);
INTEGERS(16);

/* ---- qsgd and terngrad with shared=1 -------------------------------------------- */

static const struct trib_packed_ints_rule qsgd = {
    .layout = signed_lanes,
    .measure = measure_norm,
    .measure_added = measure_norm_added,
    .grid = norm_grid,
    .encode = encode,
    .keep = keep,
};

const struct trib_quantise trib_quantise_qsgd_shared = {
    .name = "qsgd",
    .params = TRIB_PARAM_BIT(BITS) | TRIB_PARAM_BIT(BUCKET) | TRIB_PARAM_BIT(NORM) |
              TRIB_PARAM_BIT(SHARED),
    TRIB_PACKED_INTS_SLOTS(qsgd),
    .error = norm_error,
};

static void ternary_measure(const struct trib_codec *c, const float *x, size_t n,
                            float *head_out)
{
    measure_norm(c, x, n, head_out);
    if (*head_out > 0 && *head_out <= FLT_MAX)
        *head_out = trib_bucket_clip(c, x, n, *head_out);
}

static const struct trib_packed_ints_rule ternary = {
    .bits = 2,
    .layout = signed_lanes,
    .measure = ternary_measure,
    .grid = norm_grid,
    .encode = encode,
    .keep = keep,
};

const struct trib_quantise trib_quantise_ternary_shared = {
    .name = "ternary",
    .params = TRIB_PARAM_BIT(BUCKET) | TRIB_PARAM_BIT(CLIP) | TRIB_PARAM_BIT(SHARED),
    TRIB_PACKED_INTS_SLOTS(ternary),
    .error = trib_bucket_clip_error,
    .grows = true,
};

/* ---- uniform-thc ---------------------------------------------------------------- */

static struct trib_packed_ints range_lanes(const struct trib_codec *c)
{
    return (struct trib_packed_ints){.bucket = (size_t)c->param[TRIB_PARAM_BUCKET],
                                     .heads = 2,
                                     .bits = bits_of(c),
                                     .most = (1u << bits_of(c)) - 1};
}

static void range_measure(const struct trib_codec *c, const float *x, size_t n,
                          float *head_out)
{
    if (c->kernels->max_magnitude(x, n) < 0x7f800000u)
        c->kernels->range(x, n, head_out);
    else
        head_out[0] = head_out[1] = INFINITY;
}

static bool range_grid(const struct trib_codec *c, const float *head,
                       uint32_t contributions, struct trib_shared_scale_args *g)
{
    const double least = -(double)head[1], width = (double)head[0] - least;
    const double steps = (double)range_lanes(c).most;
    const double most = fmax(fabs((double)head[0]), fabs(least)) * c->ranks;
    const bool finite =
        width >= 0 && width <= (double)FLT_MAX / 2 && most <= (double)FLT_MAX / 2;
    const double range = fmax(width, (double)TRIB_SMALLEST_NORM);
    const bool none = width > 0 && most < (double)TRIB_SMALLEST_NORM * c->ranks;
    set_rounding(c, g);
    g->scale = (float)(steps / range);
    g->shift = head[1] * g->scale;
    g->low = 0;
    g->high = (float)steps;
    g->offset = g->middle = 0;
    g->unit = none ? 0 : finite ? (float)(range / steps) : NAN;
    g->base = none ? 0 : finite ? (float)(contributions * least) : NAN;
    return finite && !none && width > 0;
}

/* The error of an element is at most half a step, if the range is that of x itself. The
 * smallest and the largest are exact, and their squares sum to half the squared range
 * or more. */
static double range_error(const struct trib_codec *c)
{
    const double steps = range_lanes(c).most;

    return (c->param[TRIB_PARAM_BUCKET] - 2) / (2 * steps * steps);
}

static const struct trib_packed_ints_rule range = {
    .layout = range_lanes,
    .measure = range_measure,
    .grid = range_grid,
    .encode = encode,
    .keep = keep,
};

const struct trib_quantise trib_quantise_range = {
    .name = "range",
    .params = TRIB_PARAM_BIT(BITS) | TRIB_PARAM_BIT(BUCKET) | TRIB_PARAM_BIT(ROUND),
    TRIB_PACKED_INTS_SLOTS(range),
    .error = range_error,
};

/* ---- signsgd -------------------------------------------------------------------- */

static struct trib_packed_ints vote_lanes(const struct trib_codec *c)
{
    (void)c;
    return (struct trib_packed_ints){.bucket = 65536, .bits = 1, .most = 1};
}

static void vote_measure(const struct trib_codec *c, const float *x, size_t n,
                         float *head_out)
{
    (void)c, (void)x, (void)n, (void)head_out;
}

static bool vote_grid(const struct trib_codec *c, const float *head,
                      uint32_t contributions, struct trib_shared_scale_args *g)
{
    (void)c, (void)head;
    memset(g, 0, sizeof *g);
    g->unit = -2.0f;
    g->base = (float)contributions;
    return true;
}

static void vote_encode(const struct trib_codec *c, uint8_t *symbols, const float *x,
                        size_t n, const struct trib_shared_scale_args *g)
{
    (void)g;
    c->kernels->signs_encode(symbols, x, n);
}

static const struct trib_packed_ints_rule vote = {
    .layout = vote_lanes,
    .measure = vote_measure,
    .grid = vote_grid,
    .encode = vote_encode,
    .votes = true,
};

const struct trib_quantise trib_quantise_vote = {
    .name = "vote",
    TRIB_PACKED_INTS_SLOTS(vote),
    .delta = trib_delta_none,
    .grows = true,
};
