/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fixed threshold: every element whose magnitude reaches the threshold.
 *
 *     paper      Strom, Interspeech 2015; Dutta et al., AAAI 2020 (as a separate
 *                compressor)
 *     equation   C(x)_i = x_i if |x_i| >= at, else 0; zeros are never sent
 *     wire       sparse_block.c
 *     bias       biased; |C(x) - x|_inf < at. Not a contraction: small elements are
 *                never sent, so delta is unbounded. at=0 loses nothing
 *     NaN, Inf   reach any threshold, so they are sent
 *     blocks     each element is independent: the result does not depend on how x is
 *                cut
 *     state      none here; error feedback (on by default) keeps the unsent elements
 */
#include <string.h>

#include "compress/sparsify/selection.h"

static size_t choose_threshold(const struct trib_codec *c, struct trib_selection *s)
{
    const float at = (float)c->param[TRIB_PARAM_AT];
    uint32_t magnitude;
    memcpy(&magnitude, &at, sizeof magnitude);
    return trib_selection_at_least(c->kernels, s, magnitude ? magnitude : 1);
}

static double delta_threshold(const struct trib_codec *c)
{
    return c->param[TRIB_PARAM_AT] > 0 ? 0.0 : 1.0;
}

const struct trib_select trib_select_threshold = {
    .name = "threshold",
    .params = TRIB_PARAM_BIT(AT) | TRIB_PARAM_BIT(RESULT),
    .sparse = true,
    .unit = trib_unit_one,
    .choose = choose_threshold,
    .adjust = trib_adjust_none,
    .unbiased = trib_unbiased_never,
    .delta = delta_threshold,
};
