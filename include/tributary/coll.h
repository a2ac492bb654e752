/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives: blocking calls, and plans that are made once and started often.
 *
 * Every rank calls the collectives of a communicator in the same order with the same
 * count, dtype, op, codec, feedback and algorithm; ranks that disagree are named by
 * TRIB_ERR_MISMATCH on all ranks. Operations of one communicator run one after the
 * other in the order of their starts; trib_split makes a second lane.
 *
 * Codecs may keep something from one operation to the next: what they held back,
 * momentum, what they learned, and the step by which they draw at random. That belongs
 * to a plan, never to the address of a buffer: make a plan for each vector that is
 * summed again and again, and start it with whatever buffers hold that vector
 * (trib_plan_start_with), or give the vector a name (trib_allreduce_named). Blocking
 * calls without a name refuse a codec that keeps something.
 */
#ifndef TRIBUTARY_COLL_H
#define TRIBUTARY_COLL_H

#include <tributary/comm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The order in which trib_plan_ready will mark most of the vector. */
typedef enum trib_feed {
    TRIB_FEED_WHOLE,    /* all of it is ready at trib_plan_start */
    TRIB_FEED_FORWARD,  /* piecewise, from the first element on */
    TRIB_FEED_BACKWARD, /* piecewise, from the last element on, as back-propagation
                         * does */
} trib_feed_t;

#define TRIB_PLAN_NAME_MAX 63 /* characters */

/*
 * The collectives. count is in elements:
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
 *                                                that of rank 0 stays as it is
 *
 * send == NULL or send == recv means in place: the input is read from where the result
 * goes (all-gather: from block `rank` of recv; reduce-scatter: recv holds
 * count * ranks elements and block `rank` of it becomes the result; gather and scatter:
 * the same on root). A pointer to block `rank` of the longer buffer means the same, as
 * in MPI and NCCL: send = recv + rank * count elements of an all-gather, recv = send +
 * rank * count elements of a reduce-scatter. The root of a scatter may give recv ==
 * NULL, too. An all-to-all in place copies its input first.
 *
 * Blocks of any lengths and places: send_counts, send_offsets, recv_counts and
 * recv_offsets of trib_desc_t, each [ranks], in elements. NULL counts: `count` each;
 * NULL offsets: one block behind the other. Blocks of the result must not overlap.
 *
 *   all-gather      recv_counts, the same on all ranks; a rank gives its own block
 *   reduce-scatter  send_counts, the same on all ranks; a rank gets its own block
 *   gather          recv_counts, read on root; elsewhere any pointer but NULL says that
 *                   the root has counts, and `count` is the length of the own block
 *   scatter         send_counts, likewise
 *   all-to-all      send_counts and recv_counts: what goes to and comes from each rank
 *
 * A sender's length that differs from the receiver's ends in TRIB_ERR_MISMATCH, which
 * names both. Offsets are each rank's own affair. Counts may be 0.
 */
typedef struct trib_desc {
    size_t size;           /* sizeof(trib_desc_t) */
    const void *send;
    void *recv;            /* both NULL: only trib_plan_start_with starts the plan */
    size_t count;
    trib_dtype_t dtype;
    trib_op_t op;          /* ignored where nothing is summed */
    int root; /* of reduce, broadcast, gather and scatter; not read of others */
    const char *codec;     /* NULL: the configuration's; "none", "topk:ratio=0.01", …;
                            * "auto:max_nmse=1e-3": chosen by what starts take */
    const char *feedback;  /* NULL: the configuration's; "codec", "none", "ef14",
                            * "ef21", with options as in docs/feedback.md:
                            * "ef14:momentum=0.9" */
    const char *algorithm; /* NULL: the configuration's; "auto", "ring", "direct", … */
    size_t chunk;          /* bytes of a chunk; 0: the configuration's */
    trib_feed_t feed;
    const char *quorum;    /* NULL: the configuration's; "all" or "": every rank is
                            * counted; "0.9,deadline=20ms": services close a chunk when
                            * all are in, or so long after the first, with that part of
                            * the ranks: see trib_plan_absent. All-reduce, sum and mean,
                            * f32, f16, bf16; of codecs those that share nothing, with
                            * ef14. Without a service it changes nothing */
    const char *name;      /* of the vector, such as "layer1.weight"; NULL: none. The
                            * same on all ranks, 1 to TRIB_PLAN_NAME_MAX printable ASCII
                            * characters. Sentences and trib_plan_explain show it. What
                            * is drawn at random follows from it, and not from the order
                            * in which plans are started. Two plans of one name draw
                            * alike */
    uint64_t seed;         /* of what is drawn at random; 0: the configuration's */
    double parameter; /* of op trimmed-mean: the part of the contributions that is
                            * left out at each end, 0 (0.1) to below 0.5. Of op
                            * clipped-mean: the largest magnitude of an element, above
                            * 0. The same on all ranks; 0 of any other op, or
                            * where nothing is summed */
    const size_t *send_counts; /* [ranks], as said above; copied, as the three below */
    const size_t *send_offsets;
    const size_t *recv_counts;
    const size_t *recv_offsets;
    double prescale;  /* each element of this rank's contribution is multiplied by it
                       * before it is summed; 0: 1. Ranks may give different ones. Of
                       * this and the two below: sum and mean, of floats of any width */
    double postscale; /* each element of the result is multiplied by it; 0: 1. The same
                       * on all ranks, which is not checked */
    int weighted;     /* not 0: op mean divides by the sum of all ranks' prescale, which
                       * is this rank's weight, 0 or more: see trib_plan_set_scale. The
                       * same on all ranks; not with a quorum */
    int timeout_ms; /* a start that has not ended after so long, counted from when
                       * those before it have, ends in TRIB_ERR_TIMEOUT on all ranks;
                       * 0: when nothing has moved for TRIB_TIMEOUT_MS. Ranks may give
                       * different ones. Where aggregators do not end it in time, the
                       * ranks have as long again */
} trib_desc_t;

#define TRIB_DESC_INIT \
    { \
        sizeof(trib_desc_t), NULL, NULL, 0, TRIB_F32, TRIB_SUM, 0, NULL, NULL, NULL, \
            0, TRIB_FEED_WHOLE, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, 0, 0, 0, 0 \
    }

/**
 * trib_allreduce and its like - the blocking calls, on a cache of plans.
 *
 * The configuration's codec, feedback and quorum are for all-reduces alone, of sum and
 * mean, of f32, f16 and bf16, of TRIB_CODEC_ELEMENTS_MIN elements or more; all else is
 * summed and moved as it is. Each call draws other random numbers.
 * owner    the caller keeps both buffers; they may be used again on return
 * thread   the communicator's thread; drives the work itself
 * errors   TRIB_ERR_INVALID, TRIB_ERR_OVERLAP, TRIB_ERR_OVERFLOW (nothing happened);
 *          TRIB_ERR_UNSUPPORTED: the configuration's codec, feedback or quorum keeps
 *          something of each vector, and trib_allreduce does not say which vector this
 *          is; TRIB_ERR_MISMATCH, TRIB_ERR_PEER_LOST, TRIB_ERR_TIMEOUT (comm has
 *          failed)
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
 * trib_scan, trib_exscan - prefix sums: recv = op of send of all ranks up to this one,
 * or of those before it.
 *
 * op       sum, min, max, prod; no mean
 * errors   as trib_allreduce; TRIB_ERR_UNSUPPORTED: another op
 * paper    Hillis & Steele, CACM 29, 1986 (algorithm doubling)
 */
TRIB_API trib_status_t trib_scan(trib_comm_t *comm, const void *send, void *recv,
                                 size_t count, trib_dtype_t dtype, trib_op_t op);
TRIB_API trib_status_t trib_exscan(trib_comm_t *comm, const void *send, void *recv,
                                   size_t count, trib_dtype_t dtype, trib_op_t op);

/**
 * trib_allgatherv and its like - the same with a count and an offset for each rank, as
 * MPI's.
 *
 * counts   [ranks] elements of each block, as trib_desc_t says; of gatherv and scatterv
 *          read on root alone, and `count` is the length of the own block elsewhere
 * offsets  [ranks] elements from the buffer to each block; NULL: one behind the other
 * owner    the caller keeps the arrays; they may be used again on return
 * errors   as trib_allreduce; TRIB_ERR_INVALID: no counts, or an all-to-all in place
 *          whose blocks differ; TRIB_ERR_MISMATCH: two ranks give a block other lengths
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

/* Vectors with fewer elements go without the configuration's codec, feedback and
 * quorum. */
#define TRIB_CODEC_ELEMENTS_MIN 1024

/**
 * trib_allreduce_named - the same for a vector with a name, whatever the codec keeps.
 *
 * All calls of one name are of one vector, wherever its elements lie: they share a
 * plan, made at the first call, which lasts as long as the communicator.
 * name     as trib_desc_t.name; copied
 * errors   as trib_allreduce; TRIB_ERR_INVALID: the name had another count, dtype or op
 */
TRIB_API trib_status_t trib_allreduce_named(trib_comm_t *comm, const char *name,
                                            const void *send, void *recv, size_t count,
                                            trib_dtype_t dtype, trib_op_t op);

/**
 * trib_plan_create - compile a collective once, to start it many times.
 *
 * Local: no rank waits for another. Plans hold the state of their codec and feedback
 * (docs/feedback.md), so a lossy codec with memory needs a plan of its own per vector.
 * A codec in the description must be possible; that of the configuration is for what
 * trib_allreduce says.
 * owner    the caller frees *plan_out with trib_plan_free before trib_free_comm; texts
 *          of the description are copied, the buffers stay the caller's
 * errors   TRIB_ERR_INVALID, TRIB_ERR_OVERFLOW, TRIB_ERR_CODEC: the description;
 *          TRIB_ERR_UNSUPPORTED: no algorithm or codec does that; TRIB_ERR_NO_MEMORY.
 *          *plan_out is then NULL
 */
TRIB_API trib_status_t trib_plan_create(trib_comm_t *comm, trib_coll_t coll,
                                        const trib_desc_t *desc,
                                        trib_plan_t **plan_out);
TRIB_API trib_status_t trib_plan_allreduce(trib_comm_t *comm, const trib_desc_t *desc,
                                           trib_plan_t **plan_out);

/**
 * trib_plan_start - begin an operation of a plan.
 *
 * owner    the buffers of the description belong to the library until the plan is done
 * errors   TRIB_ERR_BUSY: the plan runs; TRIB_ERR_INVALID: the description has no
 *          buffers; TRIB_ERR_OVERLAP; what ended the communicator before
 */
TRIB_API trib_status_t trib_plan_start(trib_plan_t *plan);

/**
 * trib_plan_start_with - begin with other buffers than those of the description, this
 * time.
 *
 * For a vector that lies elsewhere each time, as gradients that are allocated anew:
 * what the plan keeps is of the vector, not of its place. Ranks need not do it alike.
 * send     [count] as trib_desc_t.send; NULL or recv: in place
 * recv     as trib_desc_t.recv; must not overlap send otherwise
 * owner    the library until the plan is done; trib_plan_ready speaks of this send
 * errors   as trib_plan_start
 */
TRIB_API trib_status_t trib_plan_start_with(trib_plan_t *plan, const void *send,
                                            void *recv);

/**
 * trib_plan_set_scale - other factors for the starts from now on.
 *
 * The plan's description has prescale, postscale or weighted; prescale 1 changes
 * nothing. A rank without samples in this step gives the weight 0. If all weights are
 * 0, the result is not divided. f64 is scaled in double, all else in float32, and
 * rounded to its dtype before it is summed, and after. In place, the contribution is
 * scaled where it lies, and only there; reduce (but on root), reduce-scatter and exscan
 * keep a scaled copy.
 * prescale finite; 0 means 0 here
 * postscale the same on all ranks; not checked
 * thread   as trib_plan_start
 * errors   TRIB_ERR_BUSY: the plan runs; TRIB_ERR_UNSUPPORTED: the plan was made
 *          without; TRIB_ERR_INVALID: not finite, or a weight below 0
 */
TRIB_API trib_status_t trib_plan_set_scale(trib_plan_t *plan, double prescale,
                                           double postscale);

/**
 * trib_plan_ready - elements [first, first + count) of send are final.
 *
 * For plans with a feed other than WHOLE, between start and wait; any thread that is
 * the communicator's. Each element once. For the best overlap mark pieces in the
 * order that desc.feed says; any order is correct.
 * errors   TRIB_ERR_INVALID: the plan is not fed piecewise, or has fewer elements
 */
TRIB_API trib_status_t trib_plan_ready(trib_plan_t *plan, size_t first, size_t count);

/**
 * trib_plan_test - is the operation done?
 *
 * TRIB_OK says that it is, TRIB_INPROGRESS that it is not yet. Never blocks.
 * thread   any, also while others test and wait for other plans of the communicator, or
 *          use it
 * errors   TRIB_ERR_MISMATCH, TRIB_ERR_PEER_LOST, TRIB_ERR_TIMEOUT: the operation has
 *          failed, and the communicator with it
 */
TRIB_API trib_status_t trib_plan_test(trib_plan_t *plan);

/**
 * trib_plan_wait - block until the operation is done.
 *
 * Drives the work itself.
 * thread   as trib_plan_test
 * errors   as trib_plan_test
 */
TRIB_API trib_status_t trib_plan_wait(trib_plan_t *plan);

/* A function that trib_plan_notify has called with the status of a start. */
typedef void (*trib_done_fn)(void *arg, trib_status_t status);

/**
 * trib_plan_notify - have a function called once when the newest start is done.
 *
 * It is to be set before trib_plan_start. It may start other plans, and must not wait,
 * nor free its own plan. trib_plan_wait returns, and trib_plan_test gives TRIB_OK, when
 * it has returned; until then the plan is busy. Starts in it count as others do: on all
 * ranks in the same order, by one thread at a time.
 * fn       gets arg and the status of the start; NULL: no function
 * thread   the communicator's. fn runs on that which finds the plan done: the progress
 *          thread, or a caller of trib_progress, test or wait; no lock of the library
 *          is held
 * errors   TRIB_ERR_BUSY: it runs; TRIB_ERR_NO_MEMORY
 */
TRIB_API trib_status_t trib_plan_notify(trib_plan_t *plan, trib_done_fn fn, void *arg);

/**
 * trib_plan_fd - a descriptor for poll() and epoll, readable when the newest start is
 * done.
 *
 * It stays readable until the next start. Do not read it: trib_plan_test says how the
 * start has ended. With progress=caller somebody has to call trib_progress.
 * owner    the plan; trib_plan_free closes it
 * errors   as trib_plan_notify; TRIB_ERR_SYSTEM: no descriptor is left
 */
TRIB_API trib_status_t trib_plan_fd(trib_plan_t *plan, int *fd_out);

/**
 * trib_plan_free - free a plan and the state that it keeps.
 *
 * NULL is allowed.
 * errors   TRIB_ERR_BUSY: it runs
 */
TRIB_API trib_status_t trib_plan_free(trib_plan_t *plan);

/**
 * trib_plan_explain - which algorithm, chunk and codec were chosen, and why.
 *
 * The text says what a codec that learns has learned, between two operations. It says
 * what codec auto has chosen, the second best, by how much, and on which links the
 * choice would be another one; 1024 bytes are enough.
 *
 * text     receives at most `bytes` bytes with the final zero
 * errors   TRIB_ERR_INVALID: no plan, or no room for a text
 */
TRIB_API trib_status_t trib_plan_explain(const trib_plan_t *plan, char *text,
                                         size_t bytes);

/**
 * trib_plan_awaits - for what the newest start waits, and for which rank.
 *
 * For a caller whose own patience ends before that of the library: the text is as "a
 * contribution of rank 1 (host a, process 7)". A start behind others waits for what the
 * first of them waits for. That rank may itself wait for another one.
 *
 * text     receives at most `bytes` bytes with the final zero; "": the start is done,
 *          or waits for nobody; 200 bytes are enough
 * thread   as trib_plan_test
 * errors   TRIB_ERR_INVALID: no plan, or no room for a text; a forked child
 */
TRIB_API trib_status_t trib_plan_awaits(trib_plan_t *plan, char *text, size_t bytes);

/**
 * trib_plan_sent - which elements of its vector this rank sent in the newest operation.
 *
 * The plan sums with a codec that selects. A sent element may have been rounded as
 * the codec does; what was not sent is kept back, or lost without error feedback.
 * mask_out element i of the vector is bit i % 8 of byte i / 8; count elements, of
 *          reduce-scatter count * ranks; all 0 before the first operation
 * sent_out how many; may be NULL
 * owner    the plan; valid until it is started again or freed
 * errors   TRIB_ERR_BUSY while it runs, TRIB_ERR_UNSUPPORTED: nothing is selected
 */
TRIB_API trib_status_t trib_plan_sent(trib_plan_t *plan, const unsigned char **mask_out,
                                      size_t *sent_out);

/**
 * trib_plan_absent - whose contributions the newest result lacks.
 *
 * The plan has a quorum. A mean is over those that are in it. What is missing is in
 * the residual of its rank, and goes with that rank's next start; a start is late by no
 * more than one of its plan: the next one waits for it.
 * elements_out [ranks] how many elements lack the contribution of each rank: 0 where it
 *          is whole, and everywhere without a quorum; the same on all ranks
 * errors   TRIB_ERR_BUSY while it runs; TRIB_ERR_INVALID: elements_out is NULL
 */
TRIB_API trib_status_t trib_plan_absent(trib_plan_t *plan, size_t *elements_out);

/* Statistics of the results of a plan. NaN and Inf are counted, and left out of all
 * else. */
typedef struct trib_plan_stats {
    size_t size;                /* sizeof(trib_plan_stats_t) */
    uint64_t results;           /* that were looked at: starts that this rank has waited
                                 * for */
    uint64_t elements;          /* of the newest result on this rank, */
    uint64_t zeros;             /* of these */
    uint64_t not_finite;        /* the same: NaN and Inf */
    double norm;                /* l2, of the newest */
    double mean_norm;           /* of all results */
    double largest;             /* magnitude in the newest */
    uint64_t not_finite_in_all; /* of all results */
} trib_plan_stats_t;

/**
 * trib_plan_stats - statistics of what the plan has summed, as this rank has it.
 *
 * With TRIB_STATS=1, of plans that sum and have a name; of reduce on its root. Whoever
 * waits for a start, or tests it, looks at the result first: a pass over it. f16, bf16
 * and integers are looked at as float32. A start that nobody waits for is not counted.
 * stats    size is set by the caller
 * thread   the communicator's
 * errors   TRIB_ERR_UNSUPPORTED: nobody looks at this plan
 */
TRIB_API trib_status_t trib_plan_stats(trib_plan_t *plan, trib_plan_stats_t *stats);

/**
 * trib_plan_residual_get - what the plan holds back of elements [first, first + count).
 *
 * The plan has a codec whose feedback keeps a residual ("codec", "ef14"). It is this
 * rank's, and goes with its next start. Whoever cuts vectors anew, as frameworks do
 * with buckets of gradients, takes it from the old plans and gives it to the new ones,
 * and nothing is lost.
 * first    an element of send; of reduce-scatter there are count * ranks
 * residual [count] elements, in the unit of send, whatever its dtype
 * thread   the communicator's
 * errors   TRIB_ERR_BUSY while it runs; TRIB_ERR_UNSUPPORTED: it keeps no residual;
 *          TRIB_ERR_INVALID: the range is not in the vector; what ended the
 *          communicator, where a start was cut short
 * paper    EF14: Seide et al., INTERSPEECH 2014
 */
TRIB_API trib_status_t trib_plan_residual_get(trib_plan_t *plan, size_t first,
                                              size_t count, float *residual);

/**
 * trib_plan_residual_set - have the plan hold back this, instead of what it does.
 *
 * residual as trib_plan_residual_get, read
 * errors   as trib_plan_residual_get
 */
TRIB_API trib_status_t trib_plan_residual_set(trib_plan_t *plan, size_t first,
                                              size_t count, const float *residual);

/**
 * trib_plan_state_save - what the plan keeps between operations, of this rank.
 *
 * Loaded into a plan of the same description on the same rank, by all ranks after the
 * same number of operations, the run goes on with the very results it would have had:
 * what is drawn at random goes on as well, whatever the seed and the communicator of
 * the plan that it is loaded into. By another algorithm, chunk size or layout of hosts,
 * or summed by a service where it was not, results are rounded otherwise, and nothing
 * that codecs have left out so far is lost. A state of a plan of another name is
 * refused; a plan without a name takes any. Plans without state have one, too: their
 * number of operations.
 * state    receives *bytes_out bytes; NULL: only *bytes_out is wanted
 * bytes    room at state
 * errors   TRIB_ERR_BUSY while it runs; TRIB_ERR_OVERFLOW: too little room; what ended
 *          the communicator, where an operation was cut short and with it the state
 */
TRIB_API trib_status_t trib_plan_state_save(trib_plan_t *plan, void *state,
                                            size_t bytes, size_t *bytes_out);

/**
 * trib_plan_state_load - go on from what trib_plan_state_save gave.
 *
 * errors   TRIB_ERR_BUSY while it runs; TRIB_ERR_INVALID, and nothing has changed: the
 *          bytes are damaged, or of a plan that differs: the sentence says in what.
 *          Ranks that load states of different steps get TRIB_ERR_MISMATCH from the
 *          next operation
 */
TRIB_API trib_status_t trib_plan_state_load(trib_plan_t *plan, const void *state,
                                            size_t bytes);

/**
 * trib_plan_state_load_from - go on from what another number of ranks has saved.
 *
 * Every rank calls it and gives some of the states, of one step, so that each state is
 * given once by one rank: of N files rank r reads r, r + M, r + 2 M, … A rank's
 * residual and momentum are then the sum of those that it gave, 0 where it gave none,
 * so that the sum over all ranks is the same as before; of op mean they are scaled by
 * M / N, so that the mean is. Of ef21 the sum of all h is carried over as well. Step
 * and random numbers go on. Marks of trib_plan_sent are not carried over, nor is what
 * a codec has learnt (powersgd, gradiveq, lgc): it learns anew, and a warning says so.
 * The result is that of trib_plan_state_load if the number of ranks is the same and
 * each rank gives its own state.
 * states   [n] of plans of the same description, but for ranks, root and buffers; of
 *          reduce-scatter count times ranks is the same
 * bytes    [n] of each of them
 * n        may be 0
 * thread   collective over the communicator; blocks
 * errors   TRIB_ERR_BUSY while it runs; TRIB_ERR_INVALID on all ranks, and nothing has
 *          changed: a state is missing or given twice, is damaged, or is of another
 *          step, run or plan; the sentence says which
 */
TRIB_API trib_status_t trib_plan_state_load_from(trib_plan_t *plan,
                                                 const void *const *states,
                                                 const size_t *bytes, size_t n);

#ifdef __cplusplus
}
#endif

#endif
