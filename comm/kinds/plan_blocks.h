/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans whose blocks have individual lengths and offsets: gather, scatter, all-to-all,
 * and all-gather and reduce-scatter with counts.
 */
#ifndef COMM_KINDS_PLAN_BLOCKS_H
#define COMM_KINDS_PLAN_BLOCKS_H

#include "comm/core/communicator.h"

/** trib_desc_has_blocks - return true if plans of this description list blocks. */
bool trib_desc_has_blocks(trib_coll_t coll, const trib_desc_t *desc);

/**
 * trib_plan_blocks_make - list the blocks of the plan: set run.desc.blocks, count and
 * plan->lengths.
 *
 * run.desc.op is set. trib_plan_destroy frees the list.
 * errors   TRIB_ERR_INVALID: counts that the collective does not accept or that are
 *          inconsistent; TRIB_ERR_OVERFLOW, TRIB_ERR_NO_MEMORY; with a message
 */
trib_status_t trib_plan_blocks_make(struct trib_plan *plan, const trib_desc_t *desc);

/** trib_plan_blocks_largest - return the number of elements of the largest block. */
size_t trib_plan_blocks_largest(const struct trib_plan *plan);

/** trib_plan_blocks_mean - return the mean elements per block, for the algorithm
 * choice: equal on all ranks. */
size_t trib_plan_blocks_mean(const struct trib_plan *plan);

/** trib_plan_blocks_finish - assign offsets to blocks that are only forwarded, and let
 * short blocks start late. The vector is cut and the program built. */
void trib_plan_blocks_finish(struct trib_plan *plan);

/** trib_plan_blocks_digest - return the digest of counts that all ranks know; 0: no
 * such counts. */
uint64_t trib_plan_blocks_digest(const struct trib_plan *plan);

/** trib_plan_blocks_free - free the list and the copy of an in-place input. */
void trib_plan_blocks_free(struct trib_plan *plan);

/**
 * trib_plan_blocks_place - convert the buffers of a start to the engine's convention.
 *
 * An in-place pointer to the local block of the longer buffer becomes send == NULL,
 * with recv the longer buffer. The input of an in-place all-to-all is copied, and send
 * is the copy.
 * errors   TRIB_ERR_NO_MEMORY, TRIB_ERR_INVALID with a message
 */
trib_status_t trib_plan_blocks_place(struct trib_plan *plan, const void **send,
                                     void **recv);

#endif
