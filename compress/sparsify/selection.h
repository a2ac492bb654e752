/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The input of a selection (struct trib_select), and functions that several of them
 * need.
 *
 * With error feedback the elements are x + residual, and that sum is the selection's to
 * make: so one by a threshold finds its elements in the pass that adds.
 */
#ifndef COMPRESS_SPARSIFY_SELECTION_H
#define COMPRESS_SPARSIFY_SELECTION_H

#include "compress/stages.h"

struct trib_selection {
    const float *x; /* n elements */
    float *residual; /* NULL, or n elements, which become x + residual: choose from
                      * these. x itself: it is that sum already */
    size_t n;
    size_t total; /* elements of the whole vector; 0: n */
    const struct trib_encode_key *key;
    struct trib_carried *carried; /* as in struct trib_encode; or NULL */
    struct trib_zeros *zeros; /* likewise */
    uint32_t *positions; /* room for n + 64: rising; of units (struct trib_select) */
    uint32_t *work; /* room for n + 256 */
    float level; /* for adjust, by choose */
    bool of_sum; /* x is a sum of selections: nothing of it is scaled anew */
};

/** trib_selection_part - ceil(ratio * n), at most n. */
size_t trib_selection_part(const struct trib_codec *c, size_t n);

/**
 * trib_selection_k - trib_selection_part of s->n; with k=, this block's part of the k
 * of the whole vector, which may be 0.
 *
 * The parts of all blocks of one start add up to k, or to all elements where these are
 * fewer. Which blocks round up follows from seed and step alone: each in its turn.
 */
size_t trib_selection_k(const struct trib_codec *c, const struct trib_selection *s);

/** trib_selection_odds - the part of the starts in which a block has a k of at least
 * 1. */
double trib_selection_odds(const struct trib_codec *c, const struct trib_selection *s);

/** trib_selection_none - makes the sum where k is 0. The first NaN or Inf is selected
 * all the same, so that it is seen in the start that brings it; returns 1 then, else
 * 0. */
size_t trib_selection_none(const struct trib_kernels *kernels,
                           const struct trib_selection *s);

/** trib_selection_magnitude - of element i, before the sum. */
uint32_t trib_selection_magnitude(const struct trib_selection *s, size_t i);

/* Elements that a sample takes side by side: what it costs is cache lines. */
enum { TRIB_SAMPLE_RUN = 4 };

/** trib_selection_run - of elements i … i + TRIB_SAMPLE_RUN - 1. */
void trib_selection_run(const struct trib_selection *s, size_t i,
                        uint32_t *magnitudes_out);

/** trib_selection_sum - makes it; what is to be chosen from. */
const float *trib_selection_sum(const struct trib_codec *c,
                                const struct trib_selection *s);

/** trib_selection_at_least - the same, and the positions of what reaches a
 * magnitude. */
size_t trib_selection_at_least(const struct trib_kernels *kernels,
                               const struct trib_selection *s, uint32_t threshold);

/** trib_selection_largest - positions of the k largest; see trib_select_largest. Where
 * s->carried is kept, its threshold is taken instead of a sample, and corrected. */
size_t trib_selection_largest(const struct trib_kernels *kernels,
                              const struct trib_selection *s, size_t k);

/** trib_keep_largest - of the elements at m positions the k largest; ties: the
 * first. */
size_t trib_keep_largest(const float *x, uint32_t *positions, size_t m, size_t k,
                         uint32_t *work);

/** trib_kth_largest - of c keys (1 <= k <= c), which get lost. *ties_out: how many of
 * its equals are among the k. */
uint32_t trib_kth_largest(uint32_t *keys, size_t c, size_t k, size_t *ties_out);

/* Slots of a selection that has nothing to say there. */
size_t trib_unit_one(const struct trib_codec *c);
void trib_adjust_none(const struct trib_codec *c, const struct trib_selection *s,
                      size_t m, float *values);
bool trib_unbiased_never(const struct trib_codec *c);

#endif
