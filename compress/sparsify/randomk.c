/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stratified random-k with a shared seed: all ranks send the same k random elements of
 * a block, one from each of k strata (stratified.h), so all positions together cost 8
 * bytes.
 *
 *     paper      Stich, Cordonnier, Jaggi, NeurIPS 2018; Konečný et al., arXiv
 *                1610.05492
 *     equation   C(x)_i = x_i if i is drawn, else 0; unbiased=1: s_i x_i, with s_i the
 *                size of i's stratum; k = ceil(ratio * n), or this block's part of k=,
 *                at most n
 *     wire       sparse_block.c, kind 3
 *     bias       i is drawn with probability 1/s_i, and s_i is n/k rounded down or up.
 *                The following depends only on that, not on which elements are drawn
 *                together. So it holds as for uniformly drawn k-subsets, although
 *                strata do not yield these:
 *                  E|C(x) - x|^2 = sum (1 - 1/s_i) x_i^2 <= (1 - 1/ceil(n/k)) |x|^2,
 *                and n/k <= 1/ratio: delta = ceil(1/ratio). With unbiased=1
 *                  E C(x)_i = s_i x_i / s_i = x_i,   E|C(x)|^2 = sum s_i x_i^2
 *                  <= ceil(n/k) |x|^2; no contraction, so error feedback is off.
 *                If a block's part of k= is below 1, it sends one element in that
 *                fraction of the starts, divided by the fraction
 *     sums       of the ranks' selections are non-zero at these k positions only: they
 *                take no more bytes than one rank's contribution in f32
 *     random     a function of seed, step and the block's first element, not of the
 *                rank; the hash of the quantisers (buckets.c), with separate keys
 *     NaN, Inf   sent unchanged when drawn; with error feedback they wait
 *     state      none here; error feedback (on by default) keeps what was not sent
 */
#include <math.h>

#include "compress/sparsify/selection.h"
#include "compress/sparsify/stratified.h"

static size_t choose_randomk(const struct trib_codec *c, struct trib_selection *s)
{
    const struct trib_stratified strata = trib_stratified_of(c, s);
    trib_selection_sum(c, s);
    if (strata.k == 0)
        return 0;
    trib_stratified_positions(c->kernels, &strata, 0, strata.k, s->positions);
    return strata.k;
}

static bool unbiased_randomk(const struct trib_codec *c)
{
    return c->param[TRIB_PARAM_UNBIASED] > 0;
}

static void adjust_randomk(const struct trib_codec *c, const struct trib_selection *s,
                           size_t m, float *values)
{
    const struct trib_stratified strata = trib_stratified_of(c, s);
    if (!unbiased_randomk(c) || m == 0 || s->of_sum)
        return;
    trib_stratified_scale(&strata, values);
    const float odds = (float)trib_selection_odds(c, s);
    for (size_t i = 0; i < m && odds < 1; i++)
        values[i] /= odds;
}

static double delta_randomk(const struct trib_codec *c)
{
    const double ratio = c->param[TRIB_PARAM_RATIO];
    return ratio > 0 && !unbiased_randomk(c) ? ceil(1.0 / ratio * (1 - 1e-12)) : 0.0;
}

/* of elements scaled by n/k, rounded up */
static double error_randomk(const struct trib_codec *c)
{
    const double ratio = c->param[TRIB_PARAM_RATIO];
    return ratio > 0 ? ceil(1 / ratio) - 1 : 0;
}

const struct trib_select trib_select_randomk = {
    .name = "randomk",
    .params = TRIB_PARAM_BIT(RATIO) | TRIB_PARAM_BIT(K) | TRIB_PARAM_BIT(UNBIASED) |
              TRIB_PARAM_BIT(RESULT),
    .ratio = 0.01,
    .sparse = true,
    .fixed = true,
    .counted = true,
    .drawn = true,
    .unit = trib_unit_one,
    .choose = choose_randomk,
    .adjust = adjust_randomk,
    .unbiased = unbiased_randomk,
    .delta = delta_randomk,
    .error = error_randomk,
};
