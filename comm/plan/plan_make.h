/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Create and destroy plans.
 */
#ifndef COMM_PLAN_PLAN_MAKE_H
#define COMM_PLAN_PLAN_MAKE_H

#include <stdbool.h>

#include <tributary/coll.h>

struct trib_comm;
struct trib_plan;
struct trib_plan_kind;

/** trib_plan_make - create a plan that is not counted as the caller's. */
trib_status_t trib_plan_make(struct trib_comm *comm, trib_coll_t coll,
                             const trib_desc_t *desc, bool leaving,
                             struct trib_plan **plan_out);
void trib_plan_destroy(struct trib_plan *plan);

/* A kind of plan that sums (index, value) pairs. */
struct trib_plan_pairs {
    const struct trib_plan_kind *kind;
    void *of_kind;
    size_t most; /* pairs per rank; 0: unknown */
};

/**
 * trib_plan_make_pairs - create a plan of this kind with the table of a dense plan; the
 * kind does the rest.
 *
 * desc     an all-reduce of the vector, without codec and quorum
 */
trib_status_t trib_plan_make_pairs(struct trib_comm *comm, const trib_desc_t *desc,
                                   const struct trib_plan_pairs *pairs,
                                   struct trib_plan **plan_out);

/** trib_plan_make_outer - describe a plan that delegates to other plans; its creator
 * supplies the table and its data. */
trib_status_t trib_plan_make_outer(struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *desc,
                                   struct trib_plan **plan_out);

/** trib_plan_make_own - as trib_plan_make, but on the communicator's own engine. */
trib_status_t trib_plan_make_own(struct trib_comm *comm, trib_coll_t coll,
                                 const trib_desc_t *desc, struct trib_plan **plan_out);

#endif
