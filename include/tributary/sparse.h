/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sparse vectors: an all-reduce of (index, value) pairs, such as the gradient of an
 * embedding. Each rank gives some elements of a vector of `length` elements, as many as
 * it has; all ranks get the union, with the sum of the values of each index, the same
 * bits everywhere.
 *
 *     trib_plan_sparse(comm, &desc, &plan);
 *     trib_plan_start_sparse(plan, indices, values, count);     // at every step
 *     trib_plan_wait(plan);
 *     trib_plan_sparse_count(plan, &n);
 *     trib_plan_sparse_pairs(plan, union_indices, union_values, n);
 *
 * Nothing is lost, so there is no codec and no error feedback. What crosses the wire is
 * the pairs, with 2 to 4 bytes for an index, or a bitmap and values where that is
 * shorter: a union that fills up costs as much as a dense vector, and 1/32 more for
 * f32.
 *
 * A tribd sums where there is one: each rank's pairs go up once, and the union comes
 * down once. One level of tribds adds in the order of ranks, as ranks alone do, so that
 * the bits are the same; a tree adds in its own order, in float32 where values are
 * narrower, and rounds once. So does "doubling", by which ranks alone merge what they
 * have in log2(ranks) steps; "auto" takes it where pairs are few and ranks many. An
 * algorithm that is asked for by name keeps the sum with the ranks; trib_plan_explain
 * says who sums, and why.
 */
#ifndef TRIBUTARY_SPARSE_H
#define TRIBUTARY_SPARSE_H

#include <tributary/coll.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The same on all ranks. */
typedef struct trib_sparse_desc {
    size_t size; /* sizeof(trib_sparse_desc_t) */
    size_t length; /* elements of the vector: an index is 0 to length - 1 */
    trib_dtype_t dtype; /* all but TRIB_BOOL */
    trib_op_t op; /* TRIB_SUM, or TRIB_MEAN: the sum divided by the number of ranks */
    size_t most; /* pairs that any rank gives to any start, each index once; 0: not
                  * known. Few pairs of a long vector then take few messages */
    const char *algorithm; /* NULL: the configuration's; "auto"; "direct", "flat",
                            * "doubling": by the ranks alone */
    const char *name; /* as trib_desc_t.name */
} trib_sparse_desc_t;

#define TRIB_SPARSE_DESC_INIT \
    { \
        sizeof(trib_sparse_desc_t), 0, TRIB_F32, TRIB_SUM, 0, NULL, NULL \
    }

/**
 * trib_plan_sparse - make a plan that sums sparse vectors.
 *
 * Local: no rank waits for another. trib_plan_test, trib_plan_wait, trib_plan_explain
 * and trib_plan_free are for these plans as well.
 * owner    the caller frees *plan_out with trib_plan_free before trib_free_comm
 * errors   TRIB_ERR_INVALID: a field is out of range; TRIB_ERR_UNSUPPORTED: another op,
 *          bool, or an algorithm that forwards sums that are no pairs;
 *          TRIB_ERR_OVERFLOW; TRIB_ERR_NO_MEMORY
 * paper    sums at the owner of a range, then an all-gather, and the change to a dense
 *          form: SparCML, Renggli et al., SC 2019
 */
TRIB_API trib_status_t trib_plan_sparse(trib_comm_t *comm,
                                        const trib_sparse_desc_t *desc,
                                        trib_plan_t **plan_out);

/**
 * trib_plan_start_sparse - begin with this rank's pairs.
 *
 * Counts differ from rank to rank and from start to start, and may be 0. Pairs may come
 * in any order; those with rising indices are not copied. Values of one index are added
 * in the order in which they are given. A value of 0 is in the union, too.
 * indices  [count] each below length; may be NULL where count is 0
 * values   [count] elements of the plan's dtype
 * owner    the library until the plan is done
 * thread   the communicator's
 * errors   TRIB_ERR_INVALID: an index is too large, there are more pairs than
 *          trib_sparse_desc_t.most, or the plan is not sparse; TRIB_ERR_BUSY,
 *          TRIB_ERR_NO_MEMORY. Nothing has started. Else as trib_plan_start
 */
TRIB_API trib_status_t trib_plan_start_sparse(trib_plan_t *plan,
                                              const uint64_t *indices,
                                              const void *values, size_t count);

/**
 * trib_plan_sparse_count - the number of pairs of the newest union.
 *
 * The union is in the plan until the next start. This holds for the two calls below.
 * errors   TRIB_ERR_BUSY while the plan runs; TRIB_ERR_INVALID: no start has ended
 *          well, or the plan is not sparse
 */
TRIB_API trib_status_t trib_plan_sparse_count(trib_plan_t *plan, size_t *count_out);

/**
 * trib_plan_sparse_pairs - copy the newest union as pairs, by rising index.
 *
 * indices  [room]
 * values   [room] elements
 * errors   TRIB_ERR_OVERFLOW: the union has more pairs, and nothing is copied
 */
TRIB_API trib_status_t trib_plan_sparse_pairs(trib_plan_t *plan, uint64_t *indices,
                                              void *values, size_t room);

/**
 * trib_plan_sparse_dense - write the newest union as a vector, 0 where no rank had
 * given a value.
 *
 * vector   [length] elements
 * errors   as trib_plan_sparse_count
 */
TRIB_API trib_status_t trib_plan_sparse_dense(trib_plan_t *plan, void *vector);

#ifdef __cplusplus
}
#endif

#endif
