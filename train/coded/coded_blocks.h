/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This rank's blocks. To make one, a rank fetches the partitions in its row, one after
 * the other, from the ranks that hold them, and adds them. No rank is a bottleneck for
 * all data.
 */
#ifndef TRAIN_CODED_CODED_BLOCKS_H
#define TRAIN_CODED_CODED_BLOCKS_H

#include <tributary/coll.h>

#include "base/error.h"
#include "train/coded/code_layout.h"

/* A partition has only `part`; a sum has `sum` and `bytes`. */
struct trib_coded_block {
    const float *part;
    float *own_part; /* equals part if this object owns it */
    /* Operand of products; double, so that decoding keeps the precision of a float. */
    double *sum;
    uint8_t *bytes; /* the sum over GF(2^8), to repair lost partitions */
};

struct trib_coded_blocks {
    size_t rows, columns; /* of each block */
    int n_blocks; /* trib_code_layout_held of this rank */
    struct trib_coded_block *blocks;
    uint64_t fetched_bytes; /* partitions received to encode */
    uint64_t repaired_bytes; /* blocks received to repair lost partitions */
};

/**
 * trib_coded_blocks_move - collective: change from one layout to another.
 *
 * Lost partitions are repaired from the sums. Blocks that this rank already has are
 * kept.
 *
 * had      the old layout, whose blocks `held` has
 * next     the new layout
 * errors   as for messages; TRIB_ERR_UNSUPPORTED: a partition cannot be repaired.
 *          `held` is then unchanged.
 */
trib_status_t trib_coded_blocks_move(struct trib_coded_blocks *held, trib_comm_t *comm,
                                     const struct trib_code_layout *had,
                                     const struct trib_code_layout *next,
                                     struct trib_error *err);

/** trib_coded_blocks_destroy - free the blocks. */
void trib_coded_blocks_destroy(struct trib_coded_blocks *held);

/** trib_coded_blocks_multiply - compute y = block x: [rows] of [columns]. */
void trib_coded_blocks_multiply(const struct trib_coded_blocks *held, int block,
                                const float *x, double *y);

#endif
