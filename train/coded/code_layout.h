/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which rank holds which block. A block is a partition or a sum of several. Each block
 * has a row of real factors, which decodes products, and a row over GF(2^8), which
 * decodes the stored bytes. All ranks compute the same layout, so it is not
 * communicated.
 */
#ifndef TRAIN_CODED_CODE_LAYOUT_H
#define TRAIN_CODED_CODE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

enum { TRIB_CODE_RANKS_MAX = 256 }; /* row numbers are elements of GF(2^8) */

struct trib_code_layout {
    int parts, ranks;
    int n_blocks, room; /* blocks in use, and blocks allocated */
    int *holder; /* [room] the block's rank; -1: lost */
    int *id; /* [room] below parts: a partition; else parts + a unique number */
    double *real; /* [room * parts] */
    uint8_t *bytes; /* [room * parts] */
    /* [ranks * parts] factors by which a rank adds its gradients. NULL: blocks are
     * sums, which have no gradient. */
    double *mix;
};

/** trib_code_layout_create - allocate a layout without blocks; false: no memory. */
bool trib_code_layout_create(struct trib_code_layout *l, int parts, int ranks, int room,
                             bool mixes);
void trib_code_layout_destroy(struct trib_code_layout *l);

/** trib_code_layout_add - append a block with rows of 0 and return its index.
 * trib_code_layout_add_part: append a partition. */
int trib_code_layout_add(struct trib_code_layout *l, int holder, int id);
int trib_code_layout_add_part(struct trib_code_layout *l, int holder, int part);

/** trib_code_layout_copy_row - copy the rows of a block of another layout to block
 * `to`. */
void trib_code_layout_copy_row(struct trib_code_layout *l, int to,
                               const struct trib_code_layout *from, int block);

/** trib_code_layout_is_part - return true if a block is a partition, not a sum. */
bool trib_code_layout_is_part(const struct trib_code_layout *l, int block);

/** trib_code_layout_find - return the first block that is this partition and not lost;
 * -1: none. */
int trib_code_layout_find(const struct trib_code_layout *l, int part);

/** trib_code_layout_first, trib_code_layout_held - return the first block of a rank,
 * and the number of its blocks, which are consecutive. */
int trib_code_layout_first(const struct trib_code_layout *l, int rank);
int trib_code_layout_held(const struct trib_code_layout *l, int rank);

/**
 * trib_code_layout_lacks - return how many more independent answers a product needs; 0:
 * it can be decoded.
 *
 * here     [ranks] true for ranks that have answered
 * returns  -1: no memory
 */
int trib_code_layout_lacks(const struct trib_code_layout *l, const bool *here);

/**
 * trib_code_layout_weights - compute weights by which the ranks' mixed gradients add up
 * to the sum over all partitions.
 *
 * weights_out  [ranks]
 * returns  false: these ranks do not suffice, or no memory
 */
bool trib_code_layout_weights(const struct trib_code_layout *l, const bool *here,
                              double *weights_out);

/* Loss tolerance and cost of a layout. */
struct trib_code_quality {
    double any_one, any_two; /* share of ranks, and of pairs, that may be missing */
    /* Answers needed in addition to the number of partitions, if ranks answer in random
     * order: mean over some orders. */
    double beyond;
};

/** trib_code_layout_judge - compute the quality of a layout; false: no memory. */
bool trib_code_layout_judge(const struct trib_code_layout *l,
                            struct trib_code_quality *out);

#endif
