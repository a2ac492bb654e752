/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans of sparse vectors: what they have beside other plans.
 */
#ifndef COMM_PLAN_SPARSE_H
#define COMM_PLAN_SPARSE_H

#include "comm/plan_ops.h"
#include "comm/sorted_pairs.h"

struct trib_plan_sparse {
    size_t most; /* pairs that a rank gives; 0: not known */
    struct trib_plan_ops ops; /* those of other plans, but for start and destroy */
    struct trib_pairs_input input; /* of the running start */
    struct trib_sorted_pairs sorted;
};

/** trib_sparse_bytes - bytes of a rank's contribution at most, for the choice of an
 * algorithm. */
static inline size_t trib_sparse_bytes(const struct trib_plan_sparse *s,
                                       const trib_desc_t *d)
{
    const size_t element = trib_dtype_size(d->dtype), all = d->count * element;
    const size_t pair = element + sizeof(uint32_t);

    return s->most && s->most < all / pair ? s->most * pair : all;
}

/**
 * trib_plan_make_sparse - make a plan that does not count as one of the caller's.
 *
 * desc     an all-reduce of the vector, without codec and quorum
 * owner    the plan has `sparse`, if this succeeds
 */
trib_status_t trib_plan_make_sparse(struct trib_comm *comm, const trib_desc_t *desc,
                                    struct trib_plan_sparse *sparse,
                                    struct trib_plan **plan_out);

#endif
