/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The steps by which plan_make.c creates a plan, one file each. The calling thread runs
 * them in this order: check the description, choose an algorithm and build its
 * schedule, cut the vector into chunks, and prepend the exchange that some codecs need.
 *
 * All ranks make the same decisions without communicating. So a step may use only
 * values on which the ranks have agreed: settings, wireup messages, the description.
 */
#ifndef COMM_PLAN_PLAN_PARTS_H
#define COMM_PLAN_PLAN_PARTS_H

#include "comm/core/communicator.h"

/* Maximum elements of a chunk when pairs are few: bounds the memory of a sum. */
#define TRIB_PAIRS_PIECE ((size_t)1 << 20)

static inline size_t trib_divide_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

/** trib_plan_check_desc - refuse an invalid description, with a message. */
trib_status_t trib_plan_check_desc(struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *desc);

/** trib_plan_check_unused - refuse a field set by the caller that the collective would
 * ignore, with a message. */
trib_status_t trib_plan_check_unused(struct trib_comm *comm, trib_coll_t coll,
                                     const trib_desc_t *desc);

/**
 * trib_plan_build_schedule - choose an algorithm and build its schedule.
 *
 * The plan's codec exists. Sets run.desc.name, n_chunks, gathers and plan->why.
 * shape    receives the shape the schedule was built for
 * owner    trib_schedule_free
 * errors   TRIB_ERR_UNSUPPORTED, TRIB_ERR_NO_MEMORY with a message
 */
trib_status_t trib_plan_build_schedule(struct trib_plan *plan, const trib_desc_t *desc,
                                       struct trib_shape *shape,
                                       struct trib_schedule *out);

/** trib_plan_chunk - estimate a chunk's bytes before the algorithm is known. */
size_t trib_plan_chunk(const struct trib_plan *plan, const trib_desc_t *desc);

/** trib_plan_cut - cut the vector into chunks; TRIB_ERR_OVERFLOW with a message. */
trib_status_t trib_plan_cut(struct trib_plan *plan, const trib_desc_t *desc);

/**
 * trib_plan_put_agreement_first - prepend the all-reduce of scales for a codec whose
 * ranks agree on scales before encoding, in as many copies as fit into slots.
 */
trib_status_t trib_plan_put_agreement_first(struct trib_plan *plan,
                                            struct trib_schedule *schedule);

/** trib_plan_build - build and check one algorithm's schedule; the message is in
 * comm. */
trib_status_t trib_plan_build(struct trib_plan *plan, const struct trib_algo *algo,
                              const struct trib_shape *shape,
                              struct trib_schedule *out);

/** trib_plan_tree - return the communicator's aggregator tree; NULL: no aggregators, or
 * not a tree. */
static inline const struct trib_agg_tree *trib_plan_tree(const struct trib_comm *comm)
{
    return comm->aggregators ? comm->aggregators->tree : NULL;
}

#endif
