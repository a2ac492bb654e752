/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans of sparse vectors.
 */
#ifndef COMM_KINDS_PLAN_SPARSE_H
#define COMM_KINDS_PLAN_SPARSE_H

#include "comm/core/plan_ops.h"
#include "comm/kinds/sorted_pairs.h"

/* Maximum elements of a chunk when pairs are few: bounds the memory of a sum. */
#define TRIB_PAIRS_PIECE ((size_t)1 << 20)

struct trib_plan_sparse {
    size_t most; /* maximum pairs per rank; 0: unknown */
    const struct trib_plan_ops *under; /* table of a plan of dense elements */
    struct trib_plan_ops ops; /* copy of *under with other start and destroy rows */
    struct trib_pairs_input input; /* of the newest start */
    struct trib_sorted_pairs sorted;
    bool has_started;
};

/* Expected pair counts, for the choice of an algorithm. */
struct trib_pairs_expected {
    double pairs; /* per rank: the maximum */
    double united; /* in the union, if each rank draws its indices at random */
    double contribution, result; /* encoded bytes as fractions of the vector's bytes */
};

/** trib_pairs_expected - estimate the pairs that ranks send and receive.
 *
 * piece    elements of a chunk */
struct trib_pairs_expected trib_pairs_expected(size_t length, size_t most, int ranks,
                                               size_t element, size_t piece);

/**
 * trib_plan_make_sparse - create a plan with `sparse` attached and the table of a dense
 * plan; trib_sparse_make does the rest.
 *
 * desc     an all-reduce of the vector, without codec and quorum
 */
trib_status_t trib_plan_make_sparse(struct trib_comm *comm, const trib_desc_t *desc,
                                    struct trib_plan_sparse *sparse,
                                    struct trib_plan **plan_out);

/**
 * trib_sparse_make - create a plan that is not counted as the caller's.
 *
 * desc     as for trib_plan_make_sparse
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
