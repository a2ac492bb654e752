/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a coded matrix, shared by its calls.
 */
#ifndef TRAIN_CODED_CODED_STATE_H
#define TRAIN_CODED_CODED_STATE_H

#include <tributary/coded.h>

#include "base/error.h"
#include "train/coded/code_table.h"
#include "train/coded/coded_blocks.h"
#include "train/coded/order_star.h"

enum { TRIB_CODED_TEXT = 128 };

struct trib_coded {
    int rank, ranks;
    char code[TRIB_CODED_TEXT];
    struct trib_code_choice choice;
    uint64_t seed, generation; /* number of moves */
    struct trib_code_layout layout;
    struct trib_coded_blocks held;
    struct trib_order_star *star; /* NULL: the last move failed */
    bool shares_star; /* star belongs to another object */

    /* Used by rank 0 during a product. */
    size_t *answers; /* [ranks] bytes */
    bool *here; /* [ranks] ranks that have answered */
    double *results; /* results of all ranks, back to back */
    size_t results_room;

    /* Called with the number of blocks before this rank computes; NULL: none. */
    void (*work)(void *arg, int blocks);
    void *work_arg;

    const float *taken; /* on other ranks: the last order taken; NULL: none */
    trib_coded_stats_t stats;
    struct trib_error err;
};

/** trib_coded_matrix_begin - as trib_coded_create, with a star shared by several
 * matrices. star NULL: open one. */
trib_status_t trib_coded_matrix_begin(trib_comm_t *comm, const trib_coded_desc_t *desc,
                                      struct trib_order_star *star,
                                      struct trib_error *err, trib_coded_t **coded_out);

/** trib_coded_matrix_move - as trib_coded_move, with a shared star. */
trib_status_t trib_coded_matrix_move(trib_comm_t *comm, struct trib_order_star *star,
                                     struct trib_error *err, trib_coded_t **coded);

/** trib_coded_own_partition - transfer the ownership of the initial partition to the
 * matrix. */
void trib_coded_own_partition(trib_coded_t *coded, float *partition);

/** trib_coded_keep_sentence - store the error message for trib_coded_error(NULL);
 * return status. */
trib_status_t trib_coded_keep_sentence(trib_status_t status,
                                       const struct trib_error *err);

/** trib_coded_add_stats - add the statistics of a matrix to *sum. */
void trib_coded_add_stats(const trib_coded_t *coded, trib_coded_stats_t *sum);

#endif
