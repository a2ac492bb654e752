/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sparse vectors: an all-reduce of (index, value) pairs, such as the gradient of an
 * embedding. Each rank contributes any number of elements of a vector of `length`
 * elements. All ranks get the union of the indices, with the sum of the values of each
 * index, and the same bits everywhere.
 *
 *     trib_plan_sparse(comm, &desc, &plan);
 *     trib_plan_start_sparse(plan, indices, values, count);     // at every step
 *     trib_plan_wait(plan);
 *     trib_plan_sparse_count(plan, &n);
 *     trib_plan_sparse_pairs(plan, union_indices, union_values, n);
 *
 * The sum is lossless, without codec and error feedback. Pairs are sent with 2 to 4
 * bytes per index, or as a bitmap and values if that is shorter. A dense union thus
 * costs as much as a dense vector, plus 1/32 for f32.
 *
 * If tribd is configured, it computes the sum: each rank sends its pairs once and
 * receives the union once. One level of tribd adds in rank order, as ranks without
 * tribd do, so the bits are the same. A tree of tribd adds in its own order, in float32
 * for narrower values, and rounds once. So does the algorithm "doubling", by which
 * ranks merge their pairs in log2(ranks) steps without tribd; "auto" chooses it for few
 * pairs and many ranks. An algorithm requested by name makes the ranks compute the sum;
 * trib_plan_explain reports where the sum is computed, and why.
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
    size_t most; /* limit of pairs per rank and start, with distinct indices; 0:
                  * unknown. Few pairs of a long vector then need few messages */
    const char *algorithm; /* NULL: configured algorithm; "auto"; "direct", "flat",
                            * "doubling": the ranks alone */
    const char *name; /* as trib_desc_t.name */
} trib_sparse_desc_t;

#define TRIB_SPARSE_DESC_INIT \
    { \
        sizeof(trib_sparse_desc_t), 0, TRIB_F32, TRIB_SUM, 0, NULL, NULL \
    }

/**
 * trib_plan_sparse - create a plan that sums sparse vectors.
 *
 * Local: no rank waits for another. trib_plan_test, trib_plan_wait, trib_plan_explain
 * and trib_plan_free also apply to these plans.
 * owner    the caller frees *plan_out with trib_plan_free before trib_free_comm
 * errors   TRIB_ERR_INVALID: a field is out of range; TRIB_ERR_UNSUPPORTED: another op,
 *          bool, or an algorithm that cannot forward sums of pairs; TRIB_ERR_OVERFLOW;
 *          TRIB_ERR_NO_MEMORY
 * paper    sums at the owner of a range, then an all-gather, and the switch to a dense
 *          form: SparCML, Renggli et al., SC 2019
 */
TRIB_API trib_status_t trib_plan_sparse(trib_comm_t *comm,
                                        const trib_sparse_desc_t *desc,
                                        trib_plan_t **plan_out);

/**
 * trib_plan_start_sparse - start a sum with this rank's pairs.
 *
 * Counts may be 0 and may differ between ranks and between starts. Pairs may be in any
 * order; pairs with ascending indices are not copied. Values of one index are added in
 * the order given. The union includes indices with a value of 0.
 * indices  [count] each below length; may be NULL if count is 0
 * values   [count] elements of the plan's dtype
 * owner    the library until the plan is done
 * thread   the communicator's
 * errors   TRIB_ERR_INVALID: an index is too large, there are more pairs than
 *          trib_sparse_desc_t.most, or the plan is not sparse; TRIB_ERR_BUSY,
 *          TRIB_ERR_NO_MEMORY. Nothing was started. Otherwise as trib_plan_start
 */
TRIB_API trib_status_t trib_plan_start_sparse(trib_plan_t *plan,
                                              const uint64_t *indices,
                                              const void *values, size_t count);

/**
 * trib_plan_sparse_count - return the number of pairs in the newest union.
 *
 * The plan keeps the union until the next start, also for the next two functions.
 * errors   TRIB_ERR_BUSY: the plan is running; TRIB_ERR_INVALID: no start has
 *          succeeded, or the plan is not sparse
 */
TRIB_API trib_status_t trib_plan_sparse_count(trib_plan_t *plan, size_t *count_out);

/**
 * trib_plan_sparse_pairs - copy the newest union as pairs, by ascending index.
 *
 * indices  [room]
 * values   [room] elements
 * errors   TRIB_ERR_OVERFLOW: the union has more pairs, and nothing is copied
 */
TRIB_API trib_status_t trib_plan_sparse_pairs(trib_plan_t *plan, uint64_t *indices,
                                              void *values, size_t room);

/**
 * trib_plan_sparse_dense - write the newest union as a dense vector.
 *
 * Elements without a value from any rank become 0.
 * vector   [length] elements
 * errors   as trib_plan_sparse_count
 */
TRIB_API trib_status_t trib_plan_sparse_dense(trib_plan_t *plan, void *vector);

#ifdef __cplusplus
}
#endif

#endif
