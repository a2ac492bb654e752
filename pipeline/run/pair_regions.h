/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions: chunks of a sparse vector with about equal numbers of pairs.
 *
 * The vector is divided into cells, so short that all possible pairs of a cell fit into
 * a slot. Each start begins with an all-reduce of the number of pairs in each cell. All
 * ranks then join cells to the same regions. The regions are few, however long the
 * vector, and their owners sum about equally many pairs, wherever the indices are.
 * Cells without pairs at the border of a region belong to no region.
 *
 * S. Li, T. Hoefler, "Near-optimal sparse allreduce for distributed deep learning"
 * (Ok-Topk), PPoPP 2022, balances regions by boundaries that the ranks average every 64
 * steps. Counts are exact in every step, as slots of fixed length require.
 */
#ifndef PIPELINE_RUN_PAIR_REGIONS_H
#define PIPELINE_RUN_PAIR_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The limits for the regions of a plan. */
struct trib_regions_rule {
    size_t cell; /* elements of a cell; 0: no regions, chunks have equal lengths */
    size_t pairs; /* maximum pairs of a region of several cells */
    size_t piece; /* maximum elements of a region, at least a cell */
};

struct trib_region {
    size_t first, n; /* elements */
};

/* The regions of the newest start. */
struct trib_pair_regions {
    uint32_t *counts; /* [n_cells] pairs of this rank, later of all ranks */
    size_t n_cells;
    struct trib_region *at; /* [n] regions after the last pair are empty */
    size_t n; /* a nonzero multiple of the chunks of a round */
    size_t room;
};

/** trib_pair_regions_open - allocate memory for a vector of `length` elements; false:
 * out of memory. Call trib_pair_regions_close in any case. */
bool trib_pair_regions_open(struct trib_pair_regions *r,
                            const struct trib_regions_rule *rule, size_t length);
void trib_pair_regions_close(struct trib_pair_regions *r);

/** trib_pair_regions_count - count the n pairs with these ascending indices. */
void trib_pair_regions_count(struct trib_pair_regions *r,
                             const struct trib_regions_rule *rule,
                             const uint64_t *indices, size_t n);

/**
 * trib_pair_regions_cut - make regions from the counts of all ranks.
 *
 * length   elements of the vector
 * round    chunks of a round, each summed by a different rank
 * returns  false if out of memory
 */
bool trib_pair_regions_cut(struct trib_pair_regions *r,
                           const struct trib_regions_rule *rule, size_t length,
                           size_t round);

#endif
