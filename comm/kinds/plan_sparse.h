/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans of sparse vectors.
 */
#ifndef COMM_KINDS_PLAN_SPARSE_H
#define COMM_KINDS_PLAN_SPARSE_H

#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/kinds/sorted_pairs.h"

struct trib_plan_sparse {
    const struct trib_plan_ops *under; /* table of a plan of dense elements */
    struct trib_plan_ops ops; /* copy of *under with other start and destroy rows */
    struct trib_pairs_input input; /* of the newest start */
    struct trib_sorted_pairs sorted;
    bool has_started;
};

/* The kind has only a name: the engine knows plans with run.desc.pairs. */
extern const struct trib_plan_kind trib_plan_sparse_kind;

/** trib_plan_sparse_of - return a plan's data if it sums pairs, else NULL. */
static inline struct trib_plan_sparse *trib_plan_sparse_of(const struct trib_plan *plan)
{
    return plan->kind == &trib_plan_sparse_kind ? plan->of_kind : NULL;
}

/**
 * trib_sparse_make - create a plan that is not counted as the caller's.
 *
 * desc     an all-reduce of the vector, without codec and quorum
 * most     of trib_sparse_desc_t
 */
trib_status_t trib_sparse_make(struct trib_comm *comm, const trib_desc_t *desc,
                               size_t most, struct trib_plan **plan_out);

/**
 * trib_sparse_start - start a plan of the communicator's own engine with sorted pairs.
 *
 * in       its arrays must not change until the plan completes
 */
trib_status_t trib_sparse_start(struct trib_plan *plan,
                                const struct trib_pairs_input *in);

#endif
