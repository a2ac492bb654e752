/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The k elements largest in magnitude, exactly, in about one pass over memory.
 *
 *   1. A sample of every eighth element, but at most 8192, gives a threshold that more
 *      than k elements are very likely to reach: its rank in the sample is the expected
 *      one plus four standard deviations (the sampling of DGC, Lin et al., ICLR 2018;
 *      there the threshold decides, here it only saves work).
 *   2. One vector pass collects the positions that reach it.
 *   3. A radix select on the magnitudes of these finds the k-th largest; a last pass
 *      over the candidates keeps what is above it, and of its equals the first ones.
 *
 * Too few candidates (a sample misled by structure in the data): again with all
 * non-zero elements as candidates. The result never depends on the sample.
 */
#include <math.h>
#include <string.h>

#include "compress/stages.h"

enum {
    SAMPLE_STRIDE = 8,
    SAMPLES_MIN = 256, /* below, the margin of the threshold eats what it saves */
    SAMPLES_MAX = 8192,
    RADIX_BINS = 2048,
    SAMPLE_SHIFT = 20,
};

static uint32_t magnitude_at(const float *x, size_t i)
{
    uint32_t u;
    memcpy(&u, x + i, sizeof u);
    return u & 0x7fffffffu;
}

/* The bin, counted from the top, in which the k-th largest lies; *k becomes its rank
 * within the bin. */
static uint32_t bin_of_rank(const uint32_t *bins, size_t *k)
{
    uint32_t bin = RADIX_BINS - 1;
    while (bin && bins[bin] < *k)
        *k -= bins[bin--];
    return bin;
}

/* A magnitude, at least 1, that more than k elements probably reach. */
static uint32_t sampled_threshold(const float *x, size_t n, size_t k)
{
    const size_t eighth = n / SAMPLE_STRIDE;
    const size_t samples = eighth < SAMPLES_MAX ? eighth : SAMPLES_MAX;
    if (samples < SAMPLES_MIN)
        return 1;
    const size_t stride = n / samples;
    const double expected = (double)k * (double)samples / (double)n;
    size_t rank = (size_t)(expected + 4 * sqrt(expected) + 8);
    if (rank >= samples)
        return 1;
    uint32_t bins[RADIX_BINS] = {0};
    uint32_t jitter = 0; /* so that the stride meets no period of the data */
    for (size_t j = 0; j < samples; j++) {
        jitter = jitter * 1664525u + 1013904223u;
        const size_t offset = (size_t)((uint64_t)jitter * stride >> 32);
        bins[magnitude_at(x, j * stride + offset) >> SAMPLE_SHIFT]++;
    }
    const uint32_t threshold = bin_of_rank(bins, &rank) << SAMPLE_SHIFT;
    return threshold ? threshold : 1;
}

/* The k-th largest of c keys (1 <= k <= c), which get lost. *ties_out: how many of its
 * equals are among the k. */
static uint32_t kth_largest(uint32_t *keys, size_t c, size_t k, size_t *ties_out)
{
    static const int shifts[] = {20, 10, 0};
    static const uint32_t masks[] = {0x7ff, 0x3ff, 0x3ff};
    uint32_t value = 0;
    for (int pass = 0; pass < 3; pass++) {
        uint32_t bins[RADIX_BINS] = {0};
        for (size_t i = 0; i < c; i++)
            bins[keys[i] >> shifts[pass] & masks[pass]]++;
        const uint32_t bin = bin_of_rank(bins, &k);
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

size_t trib_select_largest(const struct trib_kernels *kernels, const float *x, size_t n,
                           size_t k, uint32_t *positions_out, uint32_t *work)
{
    const uint32_t threshold = sampled_threshold(x, n, k);
    size_t c = kernels->select_at_least(x, n, threshold, positions_out);
    if (c < k && threshold > 1)
        c = kernels->select_at_least(x, n, 1, positions_out);
    if (c <= k)
        return c;
    for (size_t i = 0; i < c; i++)
        work[i] = magnitude_at(x, positions_out[i]);
    size_t ties;
    const uint32_t least = kth_largest(work, c, k, &ties);
    size_t kept = 0;
    for (size_t i = 0; i < c; i++) {
        const uint32_t position = positions_out[i];
        const uint32_t m = magnitude_at(x, position);
        const size_t tie = m == least && ties;
        ties -= tie;
        positions_out[kept] = position;
        kept += m > least || tie;
    }
    return kept;
}
