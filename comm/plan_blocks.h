/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans whose blocks have lengths and places of their own: gather, scatter, all-to-all,
 * and all-gather and reduce-scatter with counts.
 */
#ifndef COMM_PLAN_BLOCKS_H
#define COMM_PLAN_BLOCKS_H

#include "comm/communicator.h"

/** trib_desc_has_blocks - true if plans of this description have listed blocks. */
bool trib_desc_has_blocks(trib_coll_t coll, const trib_desc_t *desc);

/**
 * trib_plan_blocks_make - list the blocks of the plan: run.desc.blocks, count and
 * plan->lengths.
 *
 * run.desc.op is set. trib_plan_destroy frees the list.
 * errors   TRIB_ERR_INVALID: counts that a collective does not take, or that do not fit
 *          together; TRIB_ERR_OVERFLOW, TRIB_ERR_NO_MEMORY; with a sentence
 */
trib_status_t trib_plan_blocks_make(struct trib_plan *plan, const trib_desc_t *desc);

/** trib_plan_blocks_largest - elements of the largest block. */
size_t trib_plan_blocks_largest(const struct trib_plan *plan);

/** trib_plan_blocks_mean - elements of a block in the mean, for the choice of an
 * algorithm: the same on all ranks. */
size_t trib_plan_blocks_mean(const struct trib_plan *plan);

/** trib_plan_blocks_finish - give places to blocks that are only passed on, and let
 * short blocks start late. The vector is cut and the program made. */
void trib_plan_blocks_finish(struct trib_plan *plan);

/** trib_plan_blocks_digest - of counts that all ranks know; 0: of none. */
uint64_t trib_plan_blocks_digest(const struct trib_plan *plan);

/** trib_plan_blocks_free - free the list and the copy of an input in place. */
void trib_plan_blocks_free(struct trib_plan *plan);

/**
 * trib_plan_blocks_place - take the buffers of a start as the engine does.
 *
 * In place by a pointer to the own block of the longer buffer becomes send == NULL and
 * recv, the longer buffer. The input of an all-to-all in place is copied, and send is
 * the copy.
 * errors   TRIB_ERR_NO_MEMORY, TRIB_ERR_INVALID with a sentence
 */
trib_status_t trib_plan_blocks_place(struct trib_plan *plan, const void **send,
                                     void **recv);

#endif
