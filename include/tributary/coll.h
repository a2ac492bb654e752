/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives: blocking calls, and plans that are created once and started often.
 *
 * Every rank calls the collectives of a communicator in the same order with the same
 * count, dtype, op, codec, feedback and algorithm. If ranks disagree, all of them get
 * TRIB_ERR_MISMATCH, whose message names the ranks. Operations of a communicator run
 * one at a time, in the order of their starts; use trib_split to run a second sequence
 * concurrently.
 *
 * Codecs may keep state between operations: residuals, momentum, learned parameters,
 * and the step number that random draws depend on. The state belongs to a plan, never
 * to a buffer address. Create one plan for each vector that is summed repeatedly, and
 * start it with any buffers that hold that vector (trib_plan_start_with); or name the
 * vector (trib_allreduce_named). Blocking calls without a name reject a codec with
 * state.
 */
#ifndef TRIBUTARY_COLL_H
#define TRIBUTARY_COLL_H

#include <tributary/comm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The order in which trib_plan_ready will mark most of the vector. */
typedef enum trib_feed {
    TRIB_FEED_WHOLE,    /* all elements are ready at trib_plan_start */
    TRIB_FEED_FORWARD,  /* in pieces, starting with the first element */
    TRIB_FEED_BACKWARD, /* in pieces, starting with the last element, as in
                         * back-propagation */
} trib_feed_t;

#define TRIB_PLAN_NAME_MAX 63 /* characters */

/*
 * Description of a collective. count is in elements:
 *
 *   all-reduce      send[count] on every rank -> recv[count] on every rank
 *   reduce          send[count]               -> recv[count] on root
 *   broadcast       send[count] on root       -> recv[count] on every rank
 *   all-gather      send[count]               -> recv[count * ranks], by rank
 *   reduce-scatter  send[count * ranks]       -> recv[count], block `rank`
 *   barrier         nothing
 *   gather          send[count]               -> recv[count * ranks] on root, by rank
 *   scatter         send[count * ranks] on root -> recv[count], block `rank`
 *   all-to-all      send[count * ranks]       -> recv[count * ranks]: block q of rank r
 *                                                becomes block r of rank q
 *   scan            send[count]               -> recv[count], of ranks 0 to `rank`
 *   exscan          send[count]               -> recv[count], of ranks 0 to `rank` - 1;
 *                                                rank 0's recv is not changed
 *
 * send == NULL or send == recv selects in-place operation: the input is read from the
 * location of the result. All-gather reads block `rank` of recv. For reduce-scatter,
 * recv holds count * ranks elements and the result replaces block `rank`. Gather and
 * scatter do the same on root. As in MPI and NCCL, a pointer to block `rank` of the
 * longer buffer also means in place: send = recv + rank * count elements for an
 * all-gather, recv = send + rank * count elements for a reduce-scatter. The root of a
 * scatter may also pass recv == NULL. An in-place all-to-all copies its input first.
 *
 * For blocks of different lengths and positions, set send_counts, send_offsets,
 * recv_counts and recv_offsets of trib_desc_t, each [ranks], in elements. NULL counts:
 * every block has `count` elements. NULL offsets: the blocks are contiguous. Blocks of
 * the result must not overlap.
 *
 *   all-gather      recv_counts, the same on all ranks; a rank sends its own block
 *   reduce-scatter  send_counts, the same on all ranks; a rank gets its own block
 *   gather          recv_counts, read on root; elsewhere any non-NULL pointer states
 *                   that the root has counts, and `count` is this rank's block length
 *   scatter         send_counts, in the same way
 *   all-to-all      send_counts and recv_counts: lengths sent to and received from each
 *                   rank
 *
 * If the lengths of sender and receiver differ, the operation fails with
 * TRIB_ERR_MISMATCH, whose message names both. Offsets may differ between ranks. Counts
 * may be 0.
 */
typedef struct trib_desc {
    size_t size;           /* sizeof(trib_desc_t) */
    const void *send;
    void *recv;            /* both NULL: only trib_plan_start_with starts the plan */
    size_t count;
    trib_dtype_t dtype;
    trib_op_t op;          /* ignored if the collective does not reduce */
    int root; /* for reduce, broadcast, gather and scatter; otherwise ignored */
    const char *codec;     /* NULL: configured codec; "none", "topk:ratio=0.01", …;
                            * "auto:max_nmse=1e-3" chooses by the time of starts */
    const char *feedback;  /* NULL: configured feedback; "codec", "none", "ef14",
                            * "ef21", with options as in docs/feedback.md:
                            * "ef14:momentum=0.9" */
    const char *algorithm; /* NULL: configured algorithm; "auto", "ring", "direct", … */
    size_t chunk;          /* bytes of a chunk; 0: configured size */
    trib_feed_t feed;
    const char *quorum;    /* NULL: configured quorum; "all" or "": every rank is
                            * required. "0.9,deadline=20ms": services close a chunk when
                            * all contributions are in, or 20 ms after the first with at
                            * least this fraction of the ranks; see trib_plan_absent.
                            * For all-reduce, sum and mean, f32, f16 and bf16, and
                            * codecs without shared state, with ef14. No effect without
                            * a service */
    const char *name;      /* name of the vector, such as "layer1.weight"; NULL: none.
                            * The same on all ranks, 1 to TRIB_PLAN_NAME_MAX printable
                            * ASCII characters. Shown in error messages and by
                            * trib_plan_explain. Random draws depend on the name and not
                            * on the order in which plans are started. Two plans with
                            * one name draw the same numbers */
    uint64_t seed;         /* of random draws; 0: configured seed */
    double parameter; /* op trimmed-mean: the fraction of contributions dropped at each
                            * end, 0 (meaning 0.1) to below 0.5. Op clipped-mean: the
                            * largest magnitude of an element, above 0. The same on all
                            * ranks; 0 for every other op and if nothing is reduced */
    const size_t *send_counts; /* [ranks], see above; these four arrays are copied */
    const size_t *send_offsets;
    const size_t *recv_counts;
    const size_t *recv_offsets;
    double prescale;  /* factor applied to each element of this rank's contribution
                       * before the reduction; 0: 1. May differ between ranks. This and
                       * the next two fields: sum and mean of floats of any width */
    double postscale; /* factor applied to each element of the result; 0: 1. Must be the
                       * same on all ranks, which is not checked */
    int weighted;     /* non-zero: op mean divides by the sum of all ranks' prescale,
                       * which is then a rank's weight, at least 0; see
                       * trib_plan_set_scale. The same on all ranks; excludes a
                       * quorum */
    int timeout_ms; /* limit of a start, counted from the end of the starts before it;
                       * a start that exceeds it fails with TRIB_ERR_TIMEOUT on all
                       * ranks. 0: a start fails after TRIB_TIMEOUT_MS without progress.
                       * May differ between ranks. If aggregators do not finish in time,
                       * the ranks have the same time again */
} trib_desc_t;

#define TRIB_DESC_INIT \
    { \
        sizeof(trib_desc_t), NULL, NULL, 0, TRIB_F32, TRIB_SUM, 0, NULL, NULL, NULL, \
            0, TRIB_FEED_WHOLE, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, 0, 0, 0, 0 \
    }

/**
 * trib_allreduce - run a blocking collective (plans are cached internally).
 *
 * The configured codec, feedback and quorum apply only to all-reduces of sum and mean,
 * of f32, f16 and bf16, with TRIB_CODEC_ELEMENTS_MIN elements or more. All other data
 * is sent uncompressed. Each call draws different random numbers.
 * owner    the caller keeps both buffers and may reuse them on return
 * thread   the communicator's; drives the operation itself
 * errors   TRIB_ERR_INVALID, TRIB_ERR_OVERLAP, TRIB_ERR_OVERFLOW (nothing happened);
 *          TRIB_ERR_UNSUPPORTED: the configured codec, feedback or quorum keeps state
 *          for each vector, and trib_allreduce does not identify the vector;
 *          TRIB_ERR_MISMATCH, TRIB_ERR_PEER_LOST, TRIB_ERR_TIMEOUT (comm has failed)
 * paper    ring: Patarasuk & Yuan, JPDC 2009; halving-doubling: Rabenseifner, ICCS 2004
 */
TRIB_API trib_status_t trib_allreduce(trib_comm_t *comm, const void *send, void *recv,
                                      size_t count, trib_dtype_t dtype, trib_op_t op);
TRIB_API trib_status_t trib_reduce(trib_comm_t *comm, const void *send, void *recv,
                                   size_t count, trib_dtype_t dtype, trib_op_t op,
                                   int root);
TRIB_API trib_status_t trib_broadcast(trib_comm_t *comm, void *buffer, size_t count,
                                      trib_dtype_t dtype, int root);
TRIB_API trib_status_t trib_allgather(trib_comm_t *comm, const void *send, void *recv,
                                      size_t count, trib_dtype_t dtype);
TRIB_API trib_status_t trib_reduce_scatter(trib_comm_t *comm, const void *send,
                                           void *recv, size_t count,
                                           trib_dtype_t dtype, trib_op_t op);
TRIB_API trib_status_t trib_barrier(trib_comm_t *comm);
TRIB_API trib_status_t trib_gather(trib_comm_t *comm, const void *send, void *recv,
                                   size_t count, trib_dtype_t dtype, int root);
TRIB_API trib_status_t trib_scatter(trib_comm_t *comm, const void *send, void *recv,
                                    size_t count, trib_dtype_t dtype, int root);
TRIB_API trib_status_t trib_alltoall(trib_comm_t *comm, const void *send, void *recv,
                                     size_t count, trib_dtype_t dtype);

/**
 * trib_scan, trib_exscan - compute prefix reductions over ranks.
 *
 * trib_scan reduces send of ranks 0 to this rank into recv; trib_exscan leaves this
 * rank's send out.
 * op       sum, min, max, prod; no mean
 * errors   as trib_allreduce; TRIB_ERR_UNSUPPORTED: another op
 * paper    Hillis & Steele, CACM 29, 1986 (algorithm doubling)
 */
TRIB_API trib_status_t trib_scan(trib_comm_t *comm, const void *send, void *recv,
                                 size_t count, trib_dtype_t dtype, trib_op_t op);
TRIB_API trib_status_t trib_exscan(trib_comm_t *comm, const void *send, void *recv,
                                   size_t count, trib_dtype_t dtype, trib_op_t op);

/**
 * trib_allgatherv - run a blocking collective with a block length for each rank.
 *
 * The counterparts of MPI's v functions.
 * counts   [ranks] elements of each block, see trib_desc_t; gatherv and scatterv read
 *          it only on root, and `count` is this rank's block length elsewhere
 * offsets  [ranks] elements from the buffer to each block; NULL: contiguous blocks
 * owner    the caller keeps the arrays and may reuse them on return
 * errors   as trib_allreduce; TRIB_ERR_INVALID: no counts, or an in-place all-to-all
 *          with unequal blocks; TRIB_ERR_MISMATCH: two ranks disagree on the length of
 *          a block
 */
TRIB_API trib_status_t trib_allgatherv(trib_comm_t *comm, const void *send, void *recv,
                                       const size_t *counts, const size_t *offsets,
                                       trib_dtype_t dtype);
TRIB_API trib_status_t trib_reduce_scatterv(trib_comm_t *comm, const void *send,
                                            void *recv, const size_t *counts,
                                            const size_t *offsets, trib_dtype_t dtype,
                                            trib_op_t op);
TRIB_API trib_status_t trib_gatherv(trib_comm_t *comm, const void *send, size_t count,
                                    void *recv, const size_t *counts,
                                    const size_t *offsets, trib_dtype_t dtype,
                                    int root);
TRIB_API trib_status_t trib_scatterv(trib_comm_t *comm, const void *send,
                                     const size_t *counts, const size_t *offsets,
                                     void *recv, size_t count, trib_dtype_t dtype,
                                     int root);
TRIB_API trib_status_t trib_alltoallv(trib_comm_t *comm, const void *send,
                                      const size_t *send_counts,
                                      const size_t *send_offsets, void *recv,
                                      const size_t *recv_counts,
                                      const size_t *recv_offsets, trib_dtype_t dtype);

/* The configured codec, feedback and quorum do not apply to vectors with fewer
 * elements. */
#define TRIB_CODEC_ELEMENTS_MIN 1024

/**
 * trib_allreduce_named - reduce a named vector, with any codec, feedback or quorum.
 *
 * All calls with one name belong to one vector, at whatever address its elements are.
 * They share a plan, which the first call creates and trib_free_comm frees.
 * name     as trib_desc_t.name; copied
 * errors   as trib_allreduce; TRIB_ERR_INVALID: the name had another count, dtype or op
 */
TRIB_API trib_status_t trib_allreduce_named(trib_comm_t *comm, const char *name,
                                            const void *send, void *recv, size_t count,
                                            trib_dtype_t dtype, trib_op_t op);

/**
 * trib_plan_create - compile a collective into a plan that can be started many times.
 *
 * Local: no rank waits for another. A plan holds the state of its codec and feedback
 * (docs/feedback.md), so a lossy codec with memory needs a separate plan for each
 * vector. A codec in the description must be usable for the operation; the configured
 * codec applies to the operations that trib_allreduce lists.
 * owner    the caller frees *plan_out with trib_plan_free before trib_free_comm; texts
 *          of the description are copied, the buffers remain the caller's
 * errors   TRIB_ERR_INVALID, TRIB_ERR_OVERFLOW, TRIB_ERR_CODEC: the description;
 *          TRIB_ERR_UNSUPPORTED: no algorithm or codec supports it; TRIB_ERR_NO_MEMORY.
 *          *plan_out is then NULL
 */
TRIB_API trib_status_t trib_plan_create(trib_comm_t *comm, trib_coll_t coll,
                                        const trib_desc_t *desc,
                                        trib_plan_t **plan_out);
TRIB_API trib_status_t trib_plan_allreduce(trib_comm_t *comm, const trib_desc_t *desc,
                                           trib_plan_t **plan_out);

/**
 * trib_plan_start - start an operation of a plan.
 *
 * owner    the buffers of the description belong to the library until the plan is done
 * errors   TRIB_ERR_BUSY: the plan is running; TRIB_ERR_INVALID: the description has no
 *          buffers; TRIB_ERR_OVERLAP; the error with which the communicator failed
 */
TRIB_API trib_status_t trib_plan_start(trib_plan_t *plan);

/**
 * trib_plan_start_with - start an operation of a plan with the given buffers.
 *
 * For a vector whose address changes, such as gradients that are allocated in each
 * step: the state of a plan belongs to the vector, not to its address. Other ranks may
 * call trib_plan_start instead.
 * send     [count] as trib_desc_t.send; NULL or recv: in place
 * recv     as trib_desc_t.recv; otherwise must not overlap send
 * owner    the library until the plan is done; trib_plan_ready refers to this send
 * errors   as trib_plan_start
 */
TRIB_API trib_status_t trib_plan_start_with(trib_plan_t *plan, const void *send,
                                            void *recv);

/**
 * trib_plan_set_scale - set the scale factors of all later starts.
 *
 * The plan's description must set prescale, postscale or weighted; prescale 1 scales
 * nothing. A rank without samples in this step passes weight 0. If all weights are 0,
 * the result is not divided. f64 is scaled in double, all other dtypes in float32, and
 * rounded to the dtype before the reduction and again after it. In place, the
 * contribution is scaled only in its own buffer; reduce (except on root),
 * reduce-scatter and exscan keep a scaled copy.
 * prescale finite; 0 means 0 here
 * postscale the same on all ranks; not checked
 * thread   as trib_plan_start
 * errors   TRIB_ERR_BUSY: the plan is running; TRIB_ERR_UNSUPPORTED: the plan was
 *          created without scaling; TRIB_ERR_INVALID: not finite, or a negative weight
 */
TRIB_API trib_status_t trib_plan_set_scale(trib_plan_t *plan, double prescale,
                                           double postscale);

/**
 * trib_plan_ready - mark elements [first, first + count) of send as final.
 *
 * For plans with a feed other than WHOLE, between start and wait, by any thread that
 * may use the communicator. Mark each element once. The order of desc.feed overlaps
 * best; any order is correct.
 * errors   TRIB_ERR_INVALID: the plan's feed is WHOLE, or the plan has fewer elements
 */
TRIB_API trib_status_t trib_plan_ready(trib_plan_t *plan, size_t first, size_t count);

/**
 * trib_plan_test - check whether the operation is done.
 *
 * Returns TRIB_OK if it is, and TRIB_INPROGRESS if not. Never blocks.
 * thread   any, also while other threads test and wait for other plans of the
 *          communicator or use the communicator
 * errors   TRIB_ERR_MISMATCH, TRIB_ERR_PEER_LOST, TRIB_ERR_TIMEOUT: the operation and
 *          the communicator have failed
 */
TRIB_API trib_status_t trib_plan_test(trib_plan_t *plan);

/**
 * trib_plan_wait - block until the operation is done.
 *
 * Drives the operation itself.
 * thread   as trib_plan_test
 * errors   as trib_plan_test
 */
TRIB_API trib_status_t trib_plan_wait(trib_plan_t *plan);

/* Completion callback of trib_plan_notify; receives the status of a start. */
typedef void (*trib_done_fn)(void *arg, trib_status_t status);

/**
 * trib_plan_notify - set a callback that runs once when the newest start is done.
 *
 * Set it before trib_plan_start. The callback may start other plans; it must neither
 * wait nor free its own plan. The plan stays busy until the callback returns; only then
 * does trib_plan_wait return or trib_plan_test return TRIB_OK. Starts in the callback
 * follow the usual rules: the same order on all ranks, one thread at a time.
 * fn       receives arg and the status of the start; NULL: none
 * thread   the communicator's. fn runs on the thread that finds the plan done: the
 *          progress thread, or a caller of trib_progress, test or wait. The library
 *          holds no lock
 * errors   TRIB_ERR_BUSY: the plan is running; TRIB_ERR_NO_MEMORY
 */
TRIB_API trib_status_t trib_plan_notify(trib_plan_t *plan, trib_done_fn fn, void *arg);

/**
 * trib_plan_fd - return a descriptor that is readable when the newest start is done.
 *
 * For poll() and epoll. The descriptor stays readable until the next start. Do not read
 * from it: trib_plan_test returns the status of the start. With progress=caller, some
 * thread must call trib_progress.
 * owner    the plan; trib_plan_free closes it
 * errors   as trib_plan_notify; TRIB_ERR_SYSTEM: no free descriptor
 */
TRIB_API trib_status_t trib_plan_fd(trib_plan_t *plan, int *fd_out);

/**
 * trib_plan_free - free a plan and its state.
 *
 * NULL is allowed.
 * errors   TRIB_ERR_BUSY: the plan is running
 */
TRIB_API trib_status_t trib_plan_free(trib_plan_t *plan);

/**
 * trib_plan_explain - describe the chosen algorithm, chunk and codec, with reasons.
 *
 * Between two operations the text also describes what a learning codec has learned. For
 * codec auto it gives the chosen codec, the second best, the margin, and the link
 * speeds at which the choice would change. 1024 bytes are enough.
 *
 * text     receives at most `bytes` bytes including the terminating zero
 * errors   TRIB_ERR_INVALID: plan is NULL, or there is no room for a text
 */
TRIB_API trib_status_t trib_plan_explain(const trib_plan_t *plan, char *text,
                                         size_t bytes);

/**
 * trib_plan_awaits - describe the data and the rank that the newest start waits for.
 *
 * For a caller whose own timeout is shorter than the library's. An example of a text is
 * "a contribution of rank 1 (host a, process 7)". If a start is queued, the text is for
 * the first start of the queue. The named rank may itself wait for another rank.
 *
 * text     receives at most `bytes` bytes including the terminating zero; "": the start
 *          is done, or waits for no rank; 200 bytes are enough
 * thread   as trib_plan_test
 * errors   TRIB_ERR_INVALID: plan is NULL, there is no room for a text, or the caller
 *          is a forked child
 */
TRIB_API trib_status_t trib_plan_awaits(trib_plan_t *plan, char *text, size_t bytes);

/**
 * trib_plan_sent - return which elements this rank sent in the newest operation.
 *
 * For plans that reduce with a selecting codec. The codec may have rounded a sent
 * element. Elements that were not sent are in the residual, or lost without error
 * feedback.
 * mask_out element i of the vector is bit i % 8 of byte i / 8; count elements, for
 *          reduce-scatter count * ranks; all 0 before the first operation
 * sent_out number of elements sent; may be NULL
 * owner    the plan; valid until it is started again or freed
 * errors   TRIB_ERR_BUSY: the plan is running; TRIB_ERR_UNSUPPORTED: the codec does not
 *          select
 */
TRIB_API trib_status_t trib_plan_sent(trib_plan_t *plan, const unsigned char **mask_out,
                                      size_t *sent_out);

/**
 * trib_plan_absent - return which ranks' contributions the newest result lacks.
 *
 * For plans with a quorum. A mean is taken over the contributions that are included. A
 * missing contribution is added to its rank's residual and sent with that rank's next
 * start. A rank can be late by at most one start of a plan; the next start waits for
 * that rank.
 * elements_out [ranks] number of elements that lack the contribution of each rank: 0 if
 *          all are included, and always 0 without a quorum; the same on all ranks
 * errors   TRIB_ERR_BUSY: the plan is running; TRIB_ERR_INVALID: elements_out is NULL
 */
TRIB_API trib_status_t trib_plan_absent(trib_plan_t *plan, size_t *elements_out);

/* Statistics of a plan's results. NaN and Inf are counted, and excluded from all other
 * fields. */
typedef struct trib_plan_stats {
    size_t size;                /* sizeof(trib_plan_stats_t) */
    uint64_t results;           /* examined, which are the starts that this rank waited
                                 * for */
    uint64_t elements;          /* of the newest result on this rank */
    uint64_t zeros;             /* of the newest result */
    uint64_t not_finite;        /* NaN and Inf of the newest result */
    double norm;                /* l2, of the newest result */
    double mean_norm;           /* of all results */
    double largest;             /* magnitude in the newest result */
    uint64_t not_finite_in_all; /* of all results */
} trib_plan_stats_t;

/**
 * trib_plan_stats - return statistics of the plan's results on this rank.
 *
 * With TRIB_STATS=1, for plans that reduce and have a name; for reduce, only on root.
 * The thread that waits for or tests a start first makes one pass over the result.
 * f16, bf16 and integers are converted to float32. A start that no thread waits for is
 * not counted.
 * stats    size is set by the caller
 * thread   the communicator's
 * errors   TRIB_ERR_UNSUPPORTED: no statistics are taken of this plan
 */
TRIB_API trib_status_t trib_plan_stats(trib_plan_t *plan, trib_plan_stats_t *stats);

/**
 * trib_plan_residual_get - copy the residual of elements [first, first + count).
 *
 * For plans with a codec whose feedback keeps a residual ("codec", "ef14"). A residual
 * belongs to this rank and is added to its next contribution. A program that divides
 * vectors differently, as frameworks do with gradient buckets, can move residuals from
 * the old plans to the new ones without loss.
 * first    an element of send; reduce-scatter has count * ranks elements
 * residual [count] elements, in the unit of send, whatever its dtype
 * thread   the communicator's
 * errors   TRIB_ERR_BUSY: the plan is running; TRIB_ERR_UNSUPPORTED: the plan keeps no
 *          residual; TRIB_ERR_INVALID: the range is outside the vector; the error with
 *          which the communicator failed, if it interrupted a start
 * paper    EF14: Seide et al., INTERSPEECH 2014
 */
TRIB_API trib_status_t trib_plan_residual_get(trib_plan_t *plan, size_t first,
                                              size_t count, float *residual);

/**
 * trib_plan_residual_set - replace the residual of elements [first, first + count).
 *
 * residual as trib_plan_residual_get, read
 * errors   as trib_plan_residual_get
 */
TRIB_API trib_status_t trib_plan_residual_set(trib_plan_t *plan, size_t first,
                                              size_t count, const float *residual);

/**
 * trib_plan_state_save - save this rank's state of the plan between operations.
 *
 * A run continues with exactly the same results if all ranks load their states into
 * plans of the same description. The states must have been saved after the same number
 * of operations. Random draws continue too, whatever the seed and the communicator of
 * the new plan. With another algorithm, chunk size or layout of hosts, or a service
 * that was not used before, results are rounded differently, but no residual is lost.
 * The name of the plan must match; a plan without a name accepts any state. A plan
 * without codec state still saves its number of operations.
 * state    receives *bytes_out bytes; NULL: only *bytes_out is wanted
 * bytes    size of the buffer at state
 * errors   TRIB_ERR_BUSY: the plan is running; TRIB_ERR_OVERFLOW: the buffer is too
 *          small; the error with which the communicator failed, if it interrupted an
 *          operation and thereby lost the state
 */
TRIB_API trib_status_t trib_plan_state_save(trib_plan_t *plan, void *state,
                                            size_t bytes, size_t *bytes_out);

/**
 * trib_plan_state_load - continue from a state that trib_plan_state_save returned.
 *
 * errors   TRIB_ERR_BUSY: the plan is running; TRIB_ERR_INVALID, with the plan
 *          unchanged: the bytes are damaged or belong to a different plan; the message
 *          names the difference. If ranks load states of different steps, the next
 *          operation fails with TRIB_ERR_MISMATCH
 */
TRIB_API trib_status_t trib_plan_state_load(trib_plan_t *plan, const void *state,
                                            size_t bytes);

/**
 * trib_plan_state_load_from - continue from states saved by another number of ranks.
 *
 * Every rank calls it and passes some of the states of one step, so that each state is
 * passed once, by one rank. For example, with N states and M ranks, rank r passes
 * states r, r + M, r + 2 M and so on. A rank's residual and momentum become the sum
 * over the states that it passed, or 0 if it passed none. Thus the sum over all ranks
 * is unchanged; for op mean they are scaled by M / N, so that the mean is unchanged.
 * For ef21 the sum of all h is carried over as well. Step numbers and random draws
 * continue. Marks of trib_plan_sent and learned parameters (powersgd, gradiveq, lgc)
 * are not carried over: the codec learns again, and logs a warning. With the same
 * number of ranks, each passing its own state, it is equivalent to
 * trib_plan_state_load.
 * states   [n] of plans with the same description, except for ranks, root and buffers;
 *          for reduce-scatter count times ranks is the same
 * bytes    [n] length of each state
 * n        may be 0
 * thread   collective over the communicator; blocks
 * errors   TRIB_ERR_BUSY: the plan is running; TRIB_ERR_INVALID on all ranks, with the
 *          plan unchanged: a state is missing, passed twice, damaged, or from another
 *          step, run or plan; the message says which
 */
TRIB_API trib_status_t trib_plan_state_load_from(trib_plan_t *plan,
                                                 const void *const *states,
                                                 const size_t *bytes, size_t n);

#ifdef __cplusplus
}
#endif

#endif
