/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chunks of a sparse vector that have about as many pairs each: regions.
 *
 * The vector is cut into cells, so short that any number of pairs of one fits into a
 * slot. Each start begins with an all-reduce of the number of pairs in each cell. All
 * ranks then join cells to the same regions: few of them, however long the vector is,
 * and no owner of regions has more to sum than another, wherever the indices are. Cells
 * without pairs at the border of a region belong to none.
 *
 * S. Li, T. Hoefler, "Near-optimal sparse allreduce for distributed deep learning"
 * (Ok-Topk), PPoPP 2022, balances regions by boundaries that the ranks average every 64
 * steps. Counts are right in every step, which a slot of fixed length needs.
 */
#ifndef PIPELINE_PAYLOAD_PAIR_REGIONS_H
#define PIPELINE_PAYLOAD_PAIR_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a plan makes regions. */
struct trib_regions_rule {
    size_t cell; /* elements of a cell; 0: there are no regions, but chunks of one
                  * length */
    size_t pairs; /* most pairs of a region of several cells: a slot has room for their
                   * list */
    size_t piece; /* most elements of a region, at least a cell */
};

struct trib_region {
    size_t first, n; /* elements */
};

/* The regions of the newest start. */
struct trib_pair_regions {
    uint32_t *counts; /* [n_cells] pairs of this rank, and then of all */
    size_t n_cells;
    struct trib_region *at; /* [n] those behind the last pair are empty */
    size_t n; /* a multiple of the chunks of a round, and not 0 */
    size_t room;
};

/** trib_pair_regions_open - memory for a vector of `length` elements; false: there is
 * none. trib_pair_regions_close follows in any case. */
bool trib_pair_regions_open(struct trib_pair_regions *r,
                            const struct trib_regions_rule *rule, size_t length);
void trib_pair_regions_close(struct trib_pair_regions *r);

/** trib_pair_regions_count - count the n pairs with these rising indices. */
void trib_pair_regions_count(struct trib_pair_regions *r,
                             const struct trib_regions_rule *rule,
                             const uint64_t *indices, size_t n);

/**
 * trib_pair_regions_cut - make regions from counts of all ranks.
 *
 * length   elements of the vector
 * round    chunks of a round, of which each is summed by another rank
 * returns  false if there is no memory
 */
bool trib_pair_regions_cut(struct trib_pair_regions *r,
                           const struct trib_regions_rule *rule, size_t length,
                           size_t round);

#endif
