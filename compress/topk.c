/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Top-k: of each encoded block the k elements largest in magnitude.
 *
 *     paper      Aji & Heafield, EMNLP 2017; Stich, Cordonnier, Jaggi, NeurIPS 2018
 *     equation   C(x)_i = x_i if |x_i| is among the k largest, else 0;
 *                k = ceil(ratio * n), or k= as given, at most n
 *     wire       sparse.c
 *     bias       biased; |C(x) - x|^2 <= (1 - k/n) |x|^2, so delta = 1 / ratio
 *     ties       the lowest positions; zeros are never sent
 *     NaN, Inf   larger than anything else, so they are sent first
 *     state      none here; error feedback (on by default) keeps what was not sent
 */
#include <math.h>

#include "compress/stages.h"

static size_t k_of(const struct trib_codec *c, size_t n)
{
    const double ratio = c->param[TRIB_PARAM_RATIO];
    /* ratio * n may come out a rounding error above the whole number that it means */
    const double k =
        ratio > 0 ? ceil(ratio * (double)n * (1 - 1e-12)) : c->param[TRIB_PARAM_K];
    return k < (double)n ? (size_t)k : n;
}

static size_t choose_topk(const struct trib_codec *c, const float *x, size_t n,
                          uint32_t *positions_out, uint32_t *work)
{
    return trib_select_largest(c->kernels, x, n, k_of(c, n), positions_out, work);
}

static double delta_topk(const struct trib_codec *c)
{
    const double ratio = c->param[TRIB_PARAM_RATIO];
    return ratio > 0 ? 1.0 / ratio : 0.0;
}

const struct trib_select trib_select_topk = {
    .name = "topk",
    .params = TRIB_PARAM_BIT(RATIO) | TRIB_PARAM_BIT(K),
    .sparse = true,
    .choose = choose_topk,
    .delta = delta_topk,
};
