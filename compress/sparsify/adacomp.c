/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * AdaComp: the elements that could become the largest of their bin in the next step.
 *
 *     paper      Chen, Choi, Brand, Agrawal, Zhang, Gopalakrishnan, AAAI 2018
 *     equation   with gradient dW and residual R:  G = R + dW,  H = G + (factor - 1)
 *                dW. Bins of `bin` elements start at the first encoded element; the
 *                last may be shorter. max_b = max |G_i|, scale = mean of max_b over all
 *                bins. C_i = sign(G_i) scale if |H_i| >= max_b and G_i is not 0, else
 *                0. Without error feedback R = 0
 *     wire       sparse_block.c, never dense; values: scale as f32, then one bit each
 *                (sign.c). A sent element takes 1 bit and about log2(e n / m) for its
 *                position. The paper uses 8 bits with bins of at most 64, and one word
 *                per bin
 *     bias       biased; not a contraction: scale may exceed a sent element, so the
 *                residual may change its sign. scale^2 is at most the mean of max_b^2,
 *                so at most |x|^2 / bins: with R = 0, |C(x) - x|^2 <= (1 + bin) |x|^2
 *     bins       which elements of a bin are sent depends on that bin only; bins of
 *                zeros send nothing. Any other bin sends at least one element, unless
 *                dW and R have opposite signs at its largest
 *     results    result=requantised or selected: signs of the sums, scaled by the mean
 *                of their magnitudes
 *     NaN, Inf   always sent; the scale is then NaN, and so is every element that this
 *                block sends
 *     state      none here; error feedback is on by default and keeps G - C
 */
#include <math.h>
#include <string.h>

#include "compress/sparsify/selection.h"

#define INFINITE_MAGNITUDE 0x7f800000u

static float float_of(uint32_t magnitude)
{
    float v;
    memcpy(&v, &magnitude, sizeof v);
    return v;
}

static size_t choose_adacomp(const struct trib_codec *c, struct trib_selection *s)
{
    const struct trib_kernels *k = c->kernels;
    const size_t bin = (size_t)c->param[TRIB_PARAM_BIN];
    struct trib_ahead ahead = {.factor = (float)(c->param[TRIB_PARAM_FACTOR] - 1)};
    double maxima = 0;
    size_t m = 0, bins = 0;
    for (size_t at = 0; at < s->n; at += bin, bins++) {
        const size_t n = s->n - at < bin ? s->n - at : bin;
        const float *g = s->residual ? s->residual + at : s->x + at;
        const uint32_t largest = s->residual
                                     ? k->add_max(s->residual + at, s->x + at, n)
                                     : k->max_magnitude(g, n);
        if (largest == 0)
            continue;
        ahead.first = (uint32_t)at;
        ahead.least = largest < INFINITE_MAGNITUDE ? largest : INFINITE_MAGNITUDE;
        maxima += (double)float_of(ahead.least);
        m += k->select_ahead(g, s->x + at, n, &ahead, s->positions + m);
    }
    s->level = isfinite(maxima) ? (float)(maxima / (double)bins) : NAN;
    return m;
}

/* Scale for values that are sums: with their mean magnitude the signs are a
 * contraction. */
static float mean_magnitude(const float *values, size_t m)
{
    double sum = 0;
    for (size_t i = 0; i < m; i++)
        sum += fabs((double)values[i]);
    return isfinite(sum) ? (float)(sum / (double)(m ? m : 1)) : NAN;
}

static void adjust_adacomp(const struct trib_codec *c, const struct trib_selection *s,
                           size_t m, float *values)
{
    enum { TOGETHER = 16 }; /* a constant count, so that the compiler vectorises */
    const float level = s->of_sum ? mean_magnitude(values, m) : s->level;
    (void)c;
    for (size_t i = 0; i < m; i += TOGETHER, values += TOGETHER)
        for (size_t j = 0; j < TOGETHER; j++) /* the array has room past its end */
            values[j] = copysignf(level, values[j]);
}

const struct trib_select trib_select_adacomp = {
    .name = "adacomp",
    .params = TRIB_PARAM_BIT(BIN) | TRIB_PARAM_BIT(FACTOR) | TRIB_PARAM_BIT(RESULT),
    .sparse = true,
    .fixed = true,
    .unit = trib_unit_one,
    .choose = choose_adacomp,
    .adjust = adjust_adacomp,
    .unbiased = trib_unbiased_never,
    .delta = trib_delta_none,
};
