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

/* The pairs that a choice of an algorithm expects. */
struct trib_pairs_expected {
    double pairs; /* of one rank: as many as it may give */
    double united; /* of the union, if each rank draws its indices by chance */
    double contribution, result; /* bytes of their words, as parts of the vector's */
};

/** trib_pairs_expected - what the ranks are expected to give and get.
 *
 * piece    elements of a chunk */
struct trib_pairs_expected trib_pairs_expected(size_t length, size_t most, int ranks,
                                               size_t element, size_t piece);

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
