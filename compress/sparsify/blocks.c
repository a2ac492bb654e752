/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole blocks of elements: the non-zero blocks, or the largest of these.
 *
 *     paper      Fei, Ho, Sahu, Canini, Sapio: OmniReduce, SIGCOMM 2021
 *     equation   ratio=1: every block with a non-zero element: C(x) = x. ratio<1: of m
 *                blocks the ceil(ratio * m) with the largest l2 norm; of equal ones the
 *                first. Blocks count from the first encoded element
 *     wire       sparse_block.c, with blocks as units: their values, then their indices
 *                as gaps or as a bitmap, whichever is smaller; all of x if that is
 *                smaller
 *     bias       ratio=1: none, and no error in f32. ratio<1: the omitted blocks are
 *                the smallest of m, so |C(x) - x|^2 <= (1 - ratio) |x|^2: delta = 1 /
 *                ratio
 *     zeros      -0 is zero: a block of zeros is not sent and decodes to 0. Elements of
 *                a sent block keep their bits
 *     NaN, Inf   non-zero; a block with either has the largest norm
 *     sums       a sum of blocks consists of blocks: results and partial sums are
 *                encoded the same way
 *     rounds     chunks in the window, whatever the density. The paper streams blocks
 *                with look-ahead: a round trip for each block of the fullest stream, in
 *                order of arrival. Here an empty chunk costs its frame of 32 bytes
 *     state      none here; with ratio<1 error feedback is on by default
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "compress/sparsify/selection.h"

static size_t unit_blocks(const struct trib_codec *c)
{
    return (size_t)c->param[TRIB_PARAM_BLOCK];
}

/* Return a number that orders like the norm and is 0 for zeros only: squares outside
 * the range of f32 are summed again in double. */
static float norm_of(const struct trib_codec *c, const float *x, size_t n)
{
    const float squares = c->kernels->sum_squares(x, n);
    if (squares > 0x1p-80f && squares <= FLT_MAX)
        return sqrtf(squares);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    if (!isfinite(sum))
        return INFINITY;
    return sum < (double)FLT_MAX * (double)FLT_MAX ? (float)sqrt(sum) : FLT_MAX;
}

/* For each block, compute the sum and then its norm while it is in the cache. */
static size_t choose_largest(const struct trib_codec *c, struct trib_selection *s)
{
    const size_t block = unit_blocks(c);
    const size_t m = s->n / block + (s->n % block != 0);
    float *norms = (float *)(void *)(s->work + m + 64);
    for (size_t i = 0; i < m; i++) {
        struct trib_selection part = *s;
        part.x += i * block;
        part.n = s->n - i * block < block ? s->n - i * block : block;
        if (part.residual)
            part.residual += i * block;
        norms[i] = norm_of(c, trib_selection_sum(c, &part), part.n);
    }
    return trib_select_largest(c->kernels, norms, m, trib_selection_part(c, m),
                               s->positions, s->work);
}

static size_t choose_blocks(const struct trib_codec *c, struct trib_selection *s)
{
    if (c->param[TRIB_PARAM_RATIO] < 1)
        return choose_largest(c, s);
    return c->kernels->blocks_nonzero(trib_selection_sum(c, s), s->n, unit_blocks(c),
                                      s->positions);
}

static bool unbiased_blocks(const struct trib_codec *c)
{
    return c->param[TRIB_PARAM_RATIO] >= 1;
}

static double delta_blocks(const struct trib_codec *c)
{
    return 1.0 / c->param[TRIB_PARAM_RATIO];
}

const struct trib_select trib_select_blocks = {
    .name = "blocks",
    .params = TRIB_PARAM_BIT(RATIO) | TRIB_PARAM_BIT(BLOCK) | TRIB_PARAM_BIT(RESULT),
    .ratio = 1.0,
    .sparse = true,
    .counted = true,
    .unit = unit_blocks,
    .choose = choose_blocks,
    .adjust = trib_adjust_none,
    .unbiased = unbiased_blocks,
    .delta = delta_blocks,
    .least = 1,
};
