/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Input of a selection (struct trib_select), and functions that several selections
 * share.
 *
 * With error feedback the elements are x + residual, and the selection computes that
 * sum. So a selection by threshold finds its elements in the pass that adds.
 */
#ifndef COMPRESS_SPARSIFY_SELECTION_H
#define COMPRESS_SPARSIFY_SELECTION_H

#include "compress/stages.h"

struct trib_selection {
    const float *x; /* n elements */
    /* NULL, or n elements that become x + residual: select from these. If equal to x,
     * it already is that sum. */
    float *residual;
    size_t n;
    size_t total; /* elements of the whole vector; 0: n */
    const struct trib_encode_key *key;
    struct trib_carried *carried; /* as in struct trib_encode; or NULL */
    struct trib_zeros *zeros; /* as in struct trib_encode; or NULL */
    /* room for n + 64; increasing; of units (struct trib_select) */
    uint32_t *positions;
    uint32_t *work; /* room for n + 256 */
    float level; /* set by choose for adjust */
    bool of_sum; /* x is a sum of selections: do not scale it again */
};

/** trib_selection_part - return ceil(ratio * n), at most n. */
size_t trib_selection_part(const struct trib_codec *c, size_t n);

/**
 * trib_selection_k - return trib_selection_part of s->n; with k=, this block's part of
 * the vector's k.
 *
 * That part may be 0. The parts of all blocks of a start add up to k, or to all
 * elements if these are fewer. Seed and step alone determine the blocks that round up:
 * each takes its turn.
 */
size_t trib_selection_k(const struct trib_codec *c, const struct trib_selection *s);

/** trib_selection_odds - return the fraction of starts in which the block has a k of at
 * least 1. */
double trib_selection_odds(const struct trib_codec *c, const struct trib_selection *s);

/**
 * trib_selection_none - compute the sum for k = 0.
 *
 * The first NaN or Inf is selected even so, so that the start that contains it reveals
 * it. Return 1 in that case, else 0.
 */
size_t trib_selection_none(const struct trib_kernels *kernels,
                           const struct trib_selection *s);

/** trib_selection_magnitude - return the magnitude of element i before the sum is
 * computed. */
uint32_t trib_selection_magnitude(const struct trib_selection *s, size_t i);

/* Elements per run of a sample, since cache lines are what a sample costs. */
enum { TRIB_SAMPLE_RUN = 4 };

/** trib_selection_run - write the magnitudes of elements i … i + TRIB_SAMPLE_RUN -
 * 1. */
void trib_selection_run(const struct trib_selection *s, size_t i,
                        uint32_t *magnitudes_out);

/** trib_selection_sum - compute the sum; return the elements to select from. */
const float *trib_selection_sum(const struct trib_codec *c,
                                const struct trib_selection *s);

/** trib_selection_at_least - compute the sum and write the positions that reach a
 * magnitude; return their number. */
size_t trib_selection_at_least(const struct trib_kernels *kernels,
                               const struct trib_selection *s, uint32_t threshold);

/**
 * trib_selection_largest - write the positions of the k largest, as
 * trib_select_largest.
 *
 * s->carried, if not NULL, replaces the sample by its threshold, and is updated.
 */
size_t trib_selection_largest(const struct trib_kernels *kernels,
                              const struct trib_selection *s, size_t k);

/** trib_keep_largest - keep the k largest of the elements at m positions; of equal ones
 * the first. */
size_t trib_keep_largest(const float *x, uint32_t *positions, size_t m, size_t k,
                         uint32_t *work);

/**
 * trib_kth_largest - return the k-th largest of c keys (1 <= k <= c), which are
 * overwritten.
 *
 * *ties_out: how many keys equal to it are among the k.
 */
uint32_t trib_kth_largest(uint32_t *keys, size_t c, size_t k, size_t *ties_out);

/* Default operations of a selection. */
size_t trib_unit_one(const struct trib_codec *c);
void trib_adjust_none(const struct trib_codec *c, const struct trib_selection *s,
                      size_t m, float *values);
bool trib_unbiased_never(const struct trib_codec *c);

#endif
