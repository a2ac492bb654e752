/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The blocks of this rank in memory, and how they get there: ranks fetch the partitions
 * that their rows name from the ranks that have them, one after the other, and add them
 * up. There is no rank through which all data goes.
 */
#ifndef TRAIN_CODED_CODED_STOCK_H
#define TRAIN_CODED_CODED_STOCK_H

#include <tributary/coll.h>

#include "base/error.h"
#include "train/coded/code_layout.h"

/* A partition has only `part`; a sum has its two forms. */
struct trib_coded_block {
    const float *part;
    float *own_part; /* the same, where it is this object's to free */
    double *sum; /* what products are taken of: double, so that decoding loses nothing
                  * that a float would keep */
    uint8_t *bytes; /* the sum over GF(2^8), to get lost partitions back by */
};

struct trib_coded_stock {
    size_t rows, columns; /* of each block */
    int n_blocks; /* as trib_code_layout_held says of this rank */
    struct trib_coded_block *blocks;
    uint64_t fetched_bytes; /* to encode: the partitions that came from other ranks */
    uint64_t repaired_bytes; /* blocks that came to get lost partitions back */
};

/**
 * trib_coded_stock_move - get the blocks of another layout.
 *
 * Partitions that are lost come back from the sums; blocks that this rank has already
 * stay as they are. Collective.
 * had      the blocks that there are; stock has this rank's
 * next     what it is to have
 * errors   as of messages; TRIB_ERR_UNSUPPORTED: a partition is lost for good. stock is
 *          then as it was
 */
trib_status_t trib_coded_stock_move(struct trib_coded_stock *stock, trib_comm_t *comm,
                                    const struct trib_code_layout *had,
                                    const struct trib_code_layout *next,
                                    struct trib_error *err);

/** trib_coded_stock_destroy - free the blocks. */
void trib_coded_stock_destroy(struct trib_coded_stock *stock);

/** trib_coded_stock_multiply - y = block x: [rows] of [columns]. */
void trib_coded_stock_multiply(const struct trib_coded_stock *stock, int block,
                               const float *x, double *y);

#endif
