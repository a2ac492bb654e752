/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A coded matrix, as its calls share it.
 */
#ifndef TRAIN_CODED_CODED_STATE_H
#define TRAIN_CODED_CODED_STATE_H

#include <tributary/coded.h>

#include "base/error.h"
#include "train/coded/code_table.h"
#include "train/coded/coded_stock.h"
#include "train/coded/order_star.h"

enum { TRIB_CODED_TEXT = 128 };

struct trib_coded {
    int rank, ranks;
    char code[TRIB_CODED_TEXT];
    struct trib_code_choice choice;
    uint64_t seed, generation; /* moves so far */
    struct trib_code_layout layout;
    struct trib_coded_stock stock;
    struct trib_order_star *star; /* NULL: the last move has failed */
    bool shares_star; /* it is somebody else's to close */

    /* Rank 0's work of one product. */
    size_t *answers; /* [ranks] bytes */
    bool *here; /* [ranks] who has answered */
    double *results; /* of all ranks, one after the other */
    size_t results_room;

    /* Called before this rank computes, with the blocks that it has; NULL: nothing. */
    void (*work)(void *arg, int blocks);
    void *work_arg;

    const float *taken; /* elsewhere: the order that was last taken; NULL: none */
    trib_coded_stats_t stats;
    struct trib_error err;
};

/**
 * trib_coded_matrix_begin - trib_coded_create with a star that several matrices share;
 * NULL: one of its own.
 */
trib_status_t trib_coded_matrix_begin(trib_comm_t *comm, const trib_coded_desc_t *desc,
                                      struct trib_order_star *star,
                                      struct trib_error *err, trib_coded_t **coded_out);

/** trib_coded_matrix_move - trib_coded_move with such a star. */
trib_status_t trib_coded_matrix_move(trib_comm_t *comm, struct trib_order_star *star,
                                     struct trib_error *err, trib_coded_t **coded);

/** trib_coded_own_partition - the matrix frees the partition that it was made with. */
void trib_coded_own_partition(trib_coded_t *coded, float *partition);

/** trib_coded_keep_sentence - for trib_coded_error(NULL); returns status. */
trib_status_t trib_coded_keep_sentence(trib_status_t status,
                                       const struct trib_error *err);

/** trib_coded_add_stats - add those of a matrix. */
void trib_coded_add_stats(const trib_coded_t *coded, trib_coded_stats_t *sum);

#endif
