/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The steps by which plan_make.c makes a plan, a file for each. The calling thread
 * takes them in this order: check the description, choose an algorithm and build its
 * schedule, cut the vector into chunks, and put the exchange that some codecs need
 * before the schedule.
 *
 * All ranks take the same decisions without talking to each other. So a step may use
 * nothing but what the ranks have agreed on: settings, wireup messages, the
 * description.
 */
#ifndef COMM_PLAN_PARTS_H
#define COMM_PLAN_PARTS_H

#include "comm/communicator.h"

static inline size_t trib_divide_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

/** trib_plan_check_desc - refuse a description that no plan can have, with a
 * sentence. */
trib_status_t trib_plan_check_desc(struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *desc);

/** trib_plan_check_unused - refuse a field of the caller's that the collective would
 * ignore, with a sentence. */
trib_status_t trib_plan_check_unused(struct trib_comm *comm, trib_coll_t coll,
                                     const trib_desc_t *desc);

/**
 * trib_plan_build_schedule - choose an algorithm and build its schedule.
 *
 * The plan's codec is made already. Sets run.desc.name, n_chunks, gathers and the
 * sentence why.
 * shape    receives what the schedule was built for
 * owner    trib_schedule_free
 * errors   TRIB_ERR_UNSUPPORTED, TRIB_ERR_NO_MEMORY with a sentence
 */
trib_status_t trib_plan_build_schedule(struct trib_plan *plan, const trib_desc_t *desc,
                                       struct trib_shape *shape,
                                       struct trib_schedule *out);

/** trib_plan_chunk - about how many bytes of the vector a chunk will have, before the
 * algorithm is known. */
size_t trib_plan_chunk(const struct trib_plan *plan, const trib_desc_t *desc);

/** trib_plan_cut - cut the vector into chunks and rounds; TRIB_ERR_OVERFLOW with a
 * sentence. */
trib_status_t trib_plan_cut(struct trib_plan *plan, const trib_desc_t *desc);

/**
 * trib_plan_put_agreement_first - for a codec whose ranks agree on scales before they
 * encode: put the all-reduce of these scales before the schedule, in as many copies as
 * fit into slots.
 */
trib_status_t trib_plan_put_agreement_first(struct trib_plan *plan,
                                            struct trib_schedule *schedule);

/** trib_plan_build - build and check the schedule of one algorithm; the sentence is in
 * comm. */
trib_status_t trib_plan_build(struct trib_plan *plan, const struct trib_algo *algo,
                              const struct trib_shape *shape,
                              struct trib_schedule *out);

/** trib_plan_tree - the tree of aggregators behind a communicator; NULL: none, or no
 * tree. */
static inline const struct trib_agg_tree *trib_plan_tree(const struct trib_comm *comm)
{
    return comm->aggregators ? comm->aggregators->tree : NULL;
}

#endif
