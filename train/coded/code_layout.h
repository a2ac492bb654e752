/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who holds what. A block is a partition, or a sum of several; each has a row of real
 * factors, by which its products are decoded, and one over GF(2^8), by which its bytes
 * are. All ranks compute the same layout, so no rank has to tell it to the others.
 */
#ifndef TRAIN_CODED_CODE_LAYOUT_H
#define TRAIN_CODED_CODE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

enum { TRIB_CODE_RANKS_MAX = 256 }; /* numbers of rows are elements of GF(2^8) */

struct trib_code_layout {
    int parts, ranks;
    int n_blocks, room; /* blocks that there are, and that there is memory for */
    int *holder; /* [room] its rank; -1: that one is lost */
    int *id; /* [room] below parts: that partition; else parts + a number of its own */
    double *real; /* [room * parts] */
    uint8_t *bytes; /* [room * parts] */
    double *mix; /* [ranks * parts] factors of the gradients that a rank adds up; NULL:
                  * blocks are sums, of which no gradient can be taken */
};

/** trib_code_layout_create - without blocks; false: there is no memory. */
bool trib_code_layout_create(struct trib_code_layout *l, int parts, int ranks, int room,
                             bool mixes);
void trib_code_layout_destroy(struct trib_code_layout *l);

/** trib_code_layout_add - one more block, with rows of 0; trib_code_layout_add_part:
 * one that is a partition. */
int trib_code_layout_add(struct trib_code_layout *l, int holder, int id);
int trib_code_layout_add_part(struct trib_code_layout *l, int holder, int part);

/** trib_code_layout_copy_row - give block `to` the rows of a block of another
 * layout. */
void trib_code_layout_copy_row(struct trib_code_layout *l, int to,
                               const struct trib_code_layout *from, int block);

/** trib_code_layout_is_part - true if a block is a partition and no sum. */
bool trib_code_layout_is_part(const struct trib_code_layout *l, int block);

/** trib_code_layout_find - the first block that is this partition and not lost; -1:
 * none. */
int trib_code_layout_find(const struct trib_code_layout *l, int part);

/** trib_code_layout_first, trib_code_layout_held - the blocks of a rank: they follow
 * one another.
 */
int trib_code_layout_first(const struct trib_code_layout *l, int rank);
int trib_code_layout_held(const struct trib_code_layout *l, int rank);

/**
 * trib_code_layout_lacks - how many more independent answers a product needs; 0: it can
 * be decoded.
 *
 * here     [ranks] true for those that have answered
 * returns  -1: there is no memory
 */
int trib_code_layout_lacks(const struct trib_code_layout *l, const bool *here);

/**
 * trib_code_layout_weights - factors by which the mixed gradients of ranks add up to
 * the sum over all partitions.
 *
 * weights_out [ranks]
 * returns  false: these ranks do not suffice, or there is no memory
 */
bool trib_code_layout_weights(const struct trib_code_layout *l, const bool *here,
                              double *weights_out);

/* How good a layout is. */
struct trib_code_quality {
    double any_one,
        any_two; /* share of the ranks, and of the pairs, that may be missing */
    double
        beyond; /* ranks to wait for beyond the number of partitions, if they answer in
                    * any order: the mean of some orders */
};

/** trib_code_layout_judge - false: there is no memory. */
bool trib_code_layout_judge(const struct trib_code_layout *l,
                            struct trib_code_quality *out);

#endif
