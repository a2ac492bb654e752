/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans of sparse vectors: what they have beside other plans.
 */
#ifndef COMM_PLAN_SPARSE_H
#define COMM_PLAN_SPARSE_H

#include "comm/plan_ops.h"
#include "comm/sorted_pairs.h"

/* Elements of a chunk of few pairs at most: the memory of a sum. */
#define TRIB_PAIRS_PIECE ((size_t)1 << 20)

struct trib_plan_sparse {
    size_t most; /* pairs that a rank gives; 0: not known */
    const struct trib_plan_ops *under; /* table of such a plan of elements */
    struct trib_plan_ops ops; /* the same, but for start and destroy */
    struct trib_pairs_input input; /* of the newest start */
    struct trib_sorted_pairs sorted;
    bool has_started;
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
 * trib_plan_make_sparse - make a plan that names `sparse`, and has the table of a plan
 * of elements: trib_sparse_make does the rest.
 *
 * desc     an all-reduce of the vector, without codec and quorum
 */
trib_status_t trib_plan_make_sparse(struct trib_comm *comm, const trib_desc_t *desc,
                                    struct trib_plan_sparse *sparse,
                                    struct trib_plan **plan_out);

/**
 * trib_sparse_make - make a plan that does not count as one of the caller's.
 *
 * desc     as of trib_plan_make_sparse
 * most     of trib_sparse_desc_t
 */
trib_status_t trib_sparse_make(struct trib_comm *comm, const trib_desc_t *desc,
                               size_t most, struct trib_plan **plan_out);

/**
 * trib_sparse_start - start a plan of the communicator's own engine with sorted pairs.
 *
 * in       its arrays lie still until the plan is done
 */
trib_status_t trib_sparse_start(struct trib_plan *plan,
                                const struct trib_pairs_input *in);

#endif
