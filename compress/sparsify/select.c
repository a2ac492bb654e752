/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The k elements largest in magnitude, exactly, in about one pass over memory.
 *
 *   1. A sample of every eighth element, limited to 2048 or one in 256, yields a
 *      threshold that more than k elements are likely to reach: its rank in the sample
 *      is the expected one plus two standard deviations and three. (DGC, Lin et al.,
 *      ICLR 2018, samples the same way; there the threshold decides, here it only saves
 *      work.) Samples are runs of four, for fewer cache lines.
 *   2. One vector pass collects the positions that reach the threshold.
 *   3. A radix select on their magnitudes finds the k-th largest. A last pass over the
 *      candidates keeps those above it, and of its equals the first ones.
 *
 * Too few candidates (by chance, or because structure in the data misleads the sample)
 * lead to a retry with half the threshold, twice, then to all non-zero elements as
 * candidates. The result never depends on the sample. With error feedback the sample is
 * of x + residual, and the vector pass computes that sum.
 *
 * A plan keeps a threshold for each chunk, 5 % below the last element that its next
 * start should select. There it replaces the sample, whose scattered elements cost a
 * cache line each, a third of a start of DGC. It is corrected at each start, as in
 * Ok-Topk (Li & Hoefler, PPoPP 2022), where it decides what is sent; here it only saves
 * work. Residuals grow in the first starts by half and more. So the threshold grows by
 * half of the last growth, or candidates would be 4 to 50 times k there.
 */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "compress/sparsify/selection.h"

enum {
    SAMPLE_STRIDE = 8,
    SAMPLES_MIN = 256, /* below this, the threshold's margin outweighs the savings */
    /* for a block in the cache; more samples cost more than they save */
    SAMPLES_ENOUGH = 2048,
    SAMPLED_ONE_IN = 256, /* for longer blocks */
    RADIX_BINS = 2048,
    OCTAVE = 1 << 23, /* subtracted from a magnitude: half of it */
    HALVINGS = 2,
    INFINITE = 0x7f800000, /* as a magnitude; NaN is above it */
};

/* Indices from 2^62 are reserved for turns. */
#define TURN_INDEX (1ull << 62)

__extension__ typedef unsigned __int128 wide;

static uint32_t magnitude_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u & 0x7fffffffu;
}

size_t trib_selection_part(const struct trib_codec *c, size_t n)
{
    /* rounding may put ratio * n slightly above the whole number it means */
    const double k = ceil(c->param[TRIB_PARAM_RATIO] * (double)n * (1 - 1e-12));
    return k < (double)n ? (size_t)k : n;
}

/* Return 0 to 2^32 - 1, the same for all blocks of a start. Steps of the golden section
 * cover the range evenly, so that no block waits long. */
static uint32_t turn_of(const struct trib_encode_key *key)
{
    const uint32_t golden = 0x9e3779b9u;
    const struct trib_rng rng = {key->seed, UINT32_MAX, 0};
    return trib_rng_draw4(rng, TURN_INDEX).word[0] + key->step * golden;
}

/* Return how many of the k elements precede element x of a vector of n: floor(k x / n +
 * turn / 2^32). */
static uint64_t part_before(uint64_t x, uint64_t k, uint64_t n, uint32_t turn)
{
    const wide offset = (wide)n * turn >> 32;
    return (uint64_t)(((wide)k * x + offset) / n);
}

size_t trib_selection_k(const struct trib_codec *c, const struct trib_selection *s)
{
    const struct trib_encode_key *key = s->key;
    const uint64_t total = s->total > s->n ? s->total : s->n;

    if (c->param[TRIB_PARAM_RATIO] > 0)
        return trib_selection_part(c, s->n);
    const uint64_t k = (uint64_t)c->param[TRIB_PARAM_K];
    if (k >= total)
        return s->n;
    if (total == s->n)
        return (size_t)k;
    const uint32_t turn = turn_of(key);
    return (size_t)(part_before(key->index + s->n, k, total, turn) -
                    part_before(key->index, k, total, turn));
}

double trib_selection_odds(const struct trib_codec *c, const struct trib_selection *s)
{
    const size_t total = s->total > s->n ? s->total : s->n;
    const double k = c->param[TRIB_PARAM_K] * (double)s->n / (double)total;

    return c->param[TRIB_PARAM_RATIO] > 0 || k >= 1 ? 1.0 : k;
}

size_t trib_selection_none(const struct trib_kernels *kernels,
                           const struct trib_selection *s)
{
    return trib_selection_at_least(kernels, s, INFINITE) > 0;
}

/* True if the selection must still add x to the residual. */
static bool adds(const struct trib_selection *s)
{
    return s->residual && s->residual != s->x;
}

uint32_t trib_selection_magnitude(const struct trib_selection *s, size_t i)
{
    return magnitude_of(adds(s) ? s->residual[i] + s->x[i] : s->x[i]);
}

void trib_selection_run(const struct trib_selection *s, size_t i,
                        uint32_t *magnitudes_out)
{
    for (size_t j = 0; j < TRIB_SAMPLE_RUN; j++)
        magnitudes_out[j] = trib_selection_magnitude(s, i + j);
}

const float *trib_selection_sum(const struct trib_codec *c,
                                const struct trib_selection *s)
{
    const struct trib_reduce_args sum = {.src = {s->residual, s->x},
                                    .dst = {s->residual},
                                    .n_src = 2,
                                    .n_dst = 1,
                                    .n = s->n};
    if (!adds(s))
        return s->x;
    c->kernels->reduce[TRIB_F32][TRIB_SUM](&sum);
    return s->residual;
}

size_t trib_selection_at_least(const struct trib_kernels *kernels,
                               const struct trib_selection *s, uint32_t threshold)
{
    float *zeros = s->zeros ? s->zeros->at : NULL;

    if (!adds(s))
        return kernels->select_at_least(s->x, s->n, threshold, s->positions);
    if (zeros)
        s->zeros->done = true;
    return kernels->add_select(s->residual, s->x, zeros, s->n, threshold, s->positions);
}

size_t trib_unit_one(const struct trib_codec *c)
{
    (void)c;
    return 1;
}

void trib_adjust_none(const struct trib_codec *c, const struct trib_selection *s,
                      size_t m, float *values)
{
    (void)c, (void)s, (void)m, (void)values;
}

bool trib_unbiased_never(const struct trib_codec *c)
{
    (void)c;
    return false;
}

/* Return the bin that contains the k-th largest key, searching down from the highest
 * non-empty bin. *k becomes its rank within the bin. */
static uint32_t bin_of_rank(const uint32_t *bins, uint32_t bin, size_t *k)
{
    size_t rank = *k;
    while (bin && bins[bin] < rank)
        rank -= bins[bin--];
    *k = rank;
    return bin;
}

uint32_t trib_kth_largest(uint32_t *keys, size_t c, size_t k, size_t *ties_out)
{
    static const int shifts[] = {20, 10, 0};
    static const uint32_t masks[] = {0x7ff, 0x3ff, 0x3ff};
    uint32_t value = 0;
    for (int pass = 0; pass < 3; pass++) {
        uint32_t bins[RADIX_BINS] = {0}, top = 0;
        for (size_t i = 0; i < c; i++) {
            const uint32_t bin = keys[i] >> shifts[pass] & masks[pass];
            bins[bin]++;
            top = bin > top ? bin : top;
        }
        const uint32_t bin = bin_of_rank(bins, top, &k);
        size_t kept = 0;
        for (size_t i = 0; i < c; i++) {
            const uint32_t key = keys[i];
            keys[kept] = key;
            kept += (key >> shifts[pass] & masks[pass]) == bin;
        }
        c = kept;
        value |= bin << shifts[pass];
    }
    *ties_out = k;
    return value;
}

/* Return a magnitude, at least 1, that more than k elements probably reach. */
static uint32_t sampled_threshold(const struct trib_selection *s, size_t k)
{
    const size_t n = s->n;
    const size_t enough = n / SAMPLED_ONE_IN;
    size_t samples = n / SAMPLE_STRIDE;
    if (samples > SAMPLES_ENOUGH)
        samples = enough > SAMPLES_ENOUGH ? enough : SAMPLES_ENOUGH;
    if (samples < SAMPLES_MIN)
        return 1;
    samples = samples / TRIB_SAMPLE_RUN * TRIB_SAMPLE_RUN;
    const size_t stride = n / (samples / TRIB_SAMPLE_RUN);
    const double expected = (double)k * (double)samples / (double)n;
    size_t rank = (size_t)(expected + 2 * sqrt(expected) + 3);
    if (rank >= samples)
        return 1;
    uint32_t jitter = 0; /* prevents aliasing of the stride with a period of the data */
    for (size_t j = 0, at = 0; j < samples; j += TRIB_SAMPLE_RUN, at += stride) {
        jitter = jitter * 1664525u + 1013904223u;
        const size_t room = stride - TRIB_SAMPLE_RUN + 1;
        trib_selection_run(s, at + (size_t)((uint64_t)jitter * room >> 32),
                           s->work + j);
    }
    const uint32_t threshold = trib_kth_largest(s->work, samples, rank, &rank);
    return threshold ? threshold : 1;
}

/* As trib_keep_largest; also return the magnitude of the last one. */
static size_t keep_largest(const float *x, uint32_t *positions, size_t m, size_t k,
                           uint32_t *work, uint32_t *least_out)
{
    for (size_t i = 0; i < m; i++)
        work[i] = magnitude_of(x[positions[i]]);
    size_t ties, kept = 0;
    const uint32_t least = trib_kth_largest(work, m, k, &ties);
    *least_out = least;
    for (size_t i = 0; i < m; i++) {
        const uint32_t position = positions[i];
        const uint32_t magnitude = magnitude_of(x[position]);
        const size_t tie = magnitude == least && ties;
        ties -= tie;
        positions[kept] = position;
        kept += magnitude > least || tie;
    }
    return kept;
}

size_t trib_keep_largest(const float *x, uint32_t *positions, size_t m, size_t k,
                         uint32_t *work)
{
    uint32_t least;

    return keep_largest(x, positions, m, k, work, &least);
}

static float value_of(uint32_t magnitude)
{
    float x;

    memcpy(&x, &magnitude, sizeof x);
    return x;
}

/* The threshold for the next start, a little below the last element that it will
 * probably select. Elements change from start to start, and more than k should reach it
 * again. Residuals grow: by half as much as in the last start, it is assumed. */
static struct trib_carried for_next_start(uint32_t before, uint32_t least)
{
    struct trib_carried next = {0, least};
    float growth = 1;

    if (least >= INFINITE || !least)
        return (struct trib_carried){0, 0}; /* NaN or Inf predicts nothing */
    if (before && before < least)
        growth = fminf(1 + (value_of(least) / value_of(before) - 1) / 2, 1.5f);
    const float t = value_of(least) * 0.95f * growth;
    memcpy(&next.threshold, &t, sizeof t);
    return next;
}

size_t trib_selection_largest(const struct trib_kernels *kernels,
                              const struct trib_selection *s, size_t k)
{
    const bool carried = s->carried && s->carried->threshold;
    uint32_t threshold = carried ? s->carried->threshold : sampled_threshold(s, k);
    size_t m = trib_selection_at_least(kernels, s, threshold);
    const float *x = s->residual ? s->residual : s->x;
    for (int i = 0; m < k && threshold > 1; i++) {
        threshold = threshold > OCTAVE && i < HALVINGS ? threshold - OCTAVE : 1;
        m = kernels->select_at_least(x, s->n, threshold, s->positions);
    }
    uint32_t least = 0;
    if (m > k)
        m = keep_largest(x, s->positions, m, k, s->work, &least);
    if (s->carried)
        *s->carried = for_next_start(s->carried->least, least);
    return m;
}

size_t trib_select_largest(const struct trib_kernels *kernels, const float *x, size_t n,
                           size_t k, uint32_t *positions_out, uint32_t *work)
{
    const struct trib_selection s = {
        .x = x, .n = n, .positions = positions_out, .work = work};
    return trib_selection_largest(kernels, &s, k);
}

/* Dense: x is encoded, so the positions are not used. */
static size_t choose_all(const struct trib_codec *c, struct trib_selection *s)
{
    (void)c;
    for (size_t i = 0; i < s->n; i++)
        s->positions[i] = (uint32_t)i;
    return s->n;
}

const struct trib_select trib_select_all = {.name = "all",
                                            .unit = trib_unit_one,
                                            .choose = choose_all,
                                            .adjust = trib_adjust_none,
                                            .unbiased = trib_unbiased_never,
                                            .delta = trib_delta_exact};
