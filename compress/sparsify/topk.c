/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Top-k: the k elements of each encoded block that are largest in magnitude.
 *
 *     paper      Aji & Heafield, EMNLP 2017; Stich, Cordonnier, Jaggi, NeurIPS 2018
 *     equation   C(x)_i = x_i if |x_i| is among the k largest, else 0; k = ceil(ratio *
 *                n), or this block's part of k=, at most n (select.c)
 *     wire       sparse_block.c
 *     bias       biased; |C(x) - x|^2 <= (1 - k/n) |x|^2, so delta = 1 / ratio
 *     ties       the lowest positions; zeros are never sent
 *     NaN, Inf   larger than anything else, so they are sent first
 *     state      none here; error feedback (on by default) keeps the unsent elements
 */
#include "compress/sparsify/selection.h"

static size_t choose_topk(const struct trib_codec *c, struct trib_selection *s)
{
    const size_t k = trib_selection_k(c, s);
    return k ? trib_selection_largest(c->kernels, s, k)
             : trib_selection_none(c->kernels, s);
}

static double delta_topk(const struct trib_codec *c)
{
    const double ratio = c->param[TRIB_PARAM_RATIO];
    return ratio > 0 ? 1.0 / ratio : 0.0;
}

const struct trib_select trib_select_topk = {
    .name = "topk",
    .params = TRIB_PARAM_BIT(RATIO) | TRIB_PARAM_BIT(K) | TRIB_PARAM_BIT(RESULT),
    .ratio = 0.01,
    .sparse = true,
    .counted = true,
    .unit = trib_unit_one,
    .choose = choose_topk,
    .adjust = trib_adjust_none,
    .unbiased = trib_unbiased_never,
    .delta = delta_topk,
    .least = 1,
};
