/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Selection of deep gradient compression: about the k largest, by a sampled threshold.
 *
 *     paper      Lin, Han, Mao, Wang, Dally, ICLR 2018
 *     equation   C(x)_i = x_i if |x_i| >= t, else 0. The fraction `ratio` of a strided
 *                sample with random start reaches t. Of the m elements that reach t:
 *                  m > k: the k largest of these, exactly, never just the first k
 *                  0.8 k <= m <= k: all of them
 *                  else: t becomes 0.8 t, up to ten times, then all non-zero elements
 *                with k as in topk. If the plan carries a threshold from start to
 *                start: the k largest
 *     sample     1 % of the elements, at least 2 n/k and at most 64 n/k, since more
 *                than 64 above t add little information; in runs of four, since cache
 *                lines are what a sample costs
 *     wire       sparse_block.c
 *     count      0.8 k to k elements, or all non-zero elements if these are fewer
 *     bias       biased. No omitted element is larger than a sent one, so it is a top-k
 *                of 0.8 k or more: |C(x) - x|^2 <= (1 - 0.8 ratio) |x|^2, delta = 1.25
 *                / ratio
 *     random     the start of the sample: a function of seed, step, rank and the
 *                block's first element
 *     ties       the lowest positions; zeros are never sent
 *     NaN, Inf   reach any threshold and count as the largest: sent first
 *     state      none here; error feedback (on by default) keeps what was not sent. The
 *                plan implements the paper's momentum correction, masking, clipping and
 *                warm-up
 */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "compress/sparsify/selection.h"

enum {
    SAMPLED_ONE_IN = 100,
    ABOVE_LEAST = 2, /* expected sampled elements above the threshold, at least */
    ABOVE_MOST = 64,
    LOWERINGS = 10,
    LARGEST_FINITE = 0x7f7fffff, /* as a magnitude */
};

/* Indices from 2^62 are reserved for samples. */
#define SAMPLE_INDEX (1ull << 62)

/* Sample `samples` magnitudes, a multiple of a run, or all. An odd stride avoids powers
 * of two in the data; the sample wraps around from a random start. */
static void take_sample(const struct trib_selection *s, size_t samples,
                        uint32_t *keys_out)
{
    const struct trib_rng rng = {s->key->seed, s->key->stream, s->key->step};
    const uint32_t draw = trib_rng_draw4(rng, SAMPLE_INDEX + s->key->index).word[0];
    const size_t runs = samples / TRIB_SAMPLE_RUN, last = s->n - TRIB_SAMPLE_RUN;
    for (size_t i = 0; samples == s->n && i < samples; i++)
        keys_out[i] = trib_selection_magnitude(s, i);
    if (samples == s->n)
        return;
    const size_t stride = ((s->n + runs - 1) / runs) | 1;
    size_t at = (size_t)((uint64_t)draw * s->n >> 32);
    for (size_t i = 0; i < samples; i += TRIB_SAMPLE_RUN) {
        trib_selection_run(s, at < last ? at : last, keys_out + i);
        at += stride;
        at -= at >= s->n ? s->n : 0;
    }
}

/* Return a magnitude from 1 to the largest finite one that about k elements reach. */
static uint32_t sampled_threshold(const struct trib_selection *s, size_t k)
{
    const double each = (double)s->n / (double)k;
    const double wanted = fmin(fmax((double)s->n / SAMPLED_ONE_IN, ABOVE_LEAST * each),
                               ABOVE_MOST * each);
    const size_t runs = (size_t)(wanted / TRIB_SAMPLE_RUN) + 1;
    const size_t few = runs * TRIB_SAMPLE_RUN, samples = 2 * few < s->n ? few : s->n;
    const size_t rank = (size_t)ceil((double)k * (double)samples / (double)s->n);
    size_t ties;
    if (k == s->n)
        return 1;
    take_sample(s, samples, s->work);
    const uint32_t t = trib_kth_largest(s->work, samples, rank, &ties);
    if (t > LARGEST_FINITE)
        return LARGEST_FINITE;
    return t ? t : 1;
}

static uint32_t lowered(uint32_t threshold)
{
    float t;
    memcpy(&t, &threshold, sizeof t);
    t *= 0.8f;
    memcpy(&threshold, &t, sizeof threshold);
    return threshold ? threshold : 1;
}

static size_t choose_dgc(const struct trib_codec *c, struct trib_selection *s)
{
    const size_t k = trib_selection_k(c, s), least = (4 * k + 4) / 5;
    if (k == 0)
        return trib_selection_none(c->kernels, s);
    if (s->carried)
        return trib_selection_largest(c->kernels, s, k);
    uint32_t threshold = sampled_threshold(s, k);
    size_t m = trib_selection_at_least(c->kernels, s, threshold);
    const float *x = s->residual ? s->residual : s->x;
    for (int i = 0; m < least && threshold > 1; i++) {
        threshold = i < LOWERINGS ? lowered(threshold) : 1;
        m = c->kernels->select_at_least(x, s->n, threshold, s->positions);
    }
    return m > k ? trib_keep_largest(x, s->positions, m, k, s->work) : m;
}

static double delta_dgc(const struct trib_codec *c)
{
    const double ratio = c->param[TRIB_PARAM_RATIO];
    return ratio > 0 ? 1.25 / ratio : 0.0;
}

const struct trib_select trib_select_dgc = {
    .name = "dgc",
    .params = TRIB_PARAM_BIT(RATIO) | TRIB_PARAM_BIT(K) | TRIB_PARAM_BIT(RESULT),
    .ratio = 0.001,
    .sparse = true,
    .counted = true,
    .unit = trib_unit_one,
    .choose = choose_dgc,
    .adjust = trib_adjust_none,
    .unbiased = trib_unbiased_never,
    .delta = delta_dgc,
    .least = 0.8,
};
