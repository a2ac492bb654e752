/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups of tensors: the gradients of a model as one object.
 *
 * Each tensor has a name, a dtype and a size, and optionally a codec and a priority.
 * The group fuses small tensors into buckets, sums a bucket once all of its tensors are
 * ready on all ranks, and returns the results tensor by tensor.
 *
 *     trib_group_create(comm, tensors, n, &opts, &group);
 *     trib_group_start(group);                  // at every step …
 *     for (i = n; i-- > 0;)
 *         trib_group_ready(group, i);           // … as each gradient is final
 *     trib_group_wait(group);
 *
 * Ranks may mark their tensors in different orders. Before starting a bucket, the ranks
 * agree by a small all-reduce on the buckets that are ready everywhere, and start these
 * in order of priority. A late but urgent tensor thus overtakes all buckets that have
 * not been started. With TRIB_FEED_WHOLE no agreement is needed.
 *
 * Threads: one at a time, any that may use the communicator. Each call drives the whole
 * group: it starts buckets that have become ready and collects results that have
 * arrived. Between calls the progress thread drives the started buckets.
 *
 * Between trib_group_start and the end of the step the communicator belongs to the
 * group. Starting anything else on the communicator fails the step, unless the feed is
 * WHOLE. Use trib_split for concurrent operations.
 */
#ifndef TRIBUTARY_GROUP_H
#define TRIBUTARY_GROUP_H

#include <tributary/coll.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_group trib_group_t;

#define TRIB_TENSOR_NAME_MAX 255 /* characters */

/* A tensor. The same on all ranks, except for the buffers. */
typedef struct trib_tensor {
    size_t size; /* sizeof(trib_tensor_t) */
    const char *name; /* unique in the group: 1 to TRIB_TENSOR_NAME_MAX printable
                       * ASCII characters, such as "layer1.0.conv1.weight" */
    const void *send; /* NULL or recv: in place */
    void *recv; /* NULL: only trib_group_start_with starts the group */
    size_t count; /* elements; may be 0 */
    trib_dtype_t dtype;
    int dims; /* number of dimensions; 0: unknown, treated as 2 */
    int priority; /* higher ones start first; only equal priorities are fused */
    const char *codec; /* NULL: as the rules say */
    const char *feedback; /* feedback of that codec, as trib_desc_t.feedback */
} trib_tensor_t;

#define TRIB_TENSOR_INIT \
    {sizeof(trib_tensor_t), NULL, NULL, NULL, 0, TRIB_F32, 0, 0, NULL, NULL}

/* A rule assigns a codec to the tensors that match all of its conditions. The first
 * matching rule applies. */
typedef struct trib_group_rule {
    size_t size; /* sizeof(trib_group_rule_t) */
    const char *name; /* shell pattern as in fnmatch(3), such as "*.bias"; NULL: any */
    size_t count_min; /* minimum of elements */
    size_t count_max; /* maximum of elements; 0: no limit */
    int dims_min; /* minimum of dimensions */
    int dims_max; /* maximum of dimensions; 0: no limit */
    const char *codec; /* "none", "topk:ratio=0.01", … */
    const char *feedback; /* as trib_desc_t.feedback */
} trib_group_rule_t;

#define TRIB_GROUP_RULE_INIT \
    {sizeof(trib_group_rule_t), NULL, 0, 0, 0, 0, NULL, NULL}

/* Called once for each tensor of a step: its result is in recv, or the step has failed.
 * The callback runs within a call of the group, on its thread, and must call neither
 * the group nor its communicator. */
typedef void (*trib_group_fn)(void *arg, size_t tensor, trib_status_t status);

/* Options of a group. The same on all ranks, except for done, arg and timeout_ms. */
typedef struct trib_group_opts {
    size_t size; /* sizeof(trib_group_opts_t) */
    const char *name; /* name of the group in error messages; NULL: none */
    trib_op_t op;
    double parameter; /* parameter of the op, as in trib_desc_t */
    trib_feed_t feed; /* WHOLE: all tensors are ready at trib_group_start. Otherwise
                       * trib_group_ready marks each one, mostly from the first or
                       * from the last */
    size_t bucket_bytes; /* size limit of a fused bucket; 0: 4 MiB. About this much is
                          * started at a time, and urgent tensors wait for it */
    size_t alone_bytes; /* a tensor of this size or more gets its own bucket, which
                          * needs no copies; 0: 64 KiB; 1: no fusion */
    unsigned cycle_us; /* tensors that become ready further apart than this are not
                          * fused: the buckets of the first step are replaced by
                          * buckets formed by time. Runs may then round sums
                          * differently. 0: buckets depend only on bytes */
    const trib_group_rule_t *rules; /* [n_rules], with the size of the first */
    size_t n_rules;
    const char *codec; /* for tensors that match no rule, if op is sum or mean, the
                           * dtype a float, and the tensor has at least 2 dimensions
                           * and TRIB_CODEC_ELEMENTS_MIN elements. NULL: the
                           * configured codec */
    const char *feedback; /* feedback of that codec; NULL: configured feedback */
    const char *algorithm; /* NULL: configured algorithm */
    uint64_t seed; /* as trib_desc_t.seed */
    trib_group_fn done; /* NULL: none */
    void *arg;
    int timeout_ms; /* limit of a step, counted from trib_group_start. A step that
                     * exceeds it fails with TRIB_ERR_TIMEOUT on all ranks, and the
                     * error message names a tensor that is missing. Checked while an
                     * operation of the step runs, and in calls of the group. 0: the
                     * step fails after TRIB_TIMEOUT_MS without progress. May differ
                     * between ranks */
    int reserved; /* 0 */
} trib_group_opts_t;

#define TRIB_GROUP_OPTS_INIT \
    { \
        sizeof(trib_group_opts_t), NULL, TRIB_SUM, 0, TRIB_FEED_WHOLE, 0, 0, 0, NULL, \
            0, NULL, NULL, NULL, 0, NULL, NULL, 0, 0 \
    }

/**
 * trib_group_create - create a group of n tensors with all plans that it needs.
 *
 * A tensor with a codec gets its own bucket, because the state of codec and feedback
 * belongs to the tensor. Tensors without a codec that are smaller than alone_bytes are
 * fused with neighbors by index of the same dtype and priority. With TRIB_CHECK each
 * tensor gets its own bucket, so that an error message names the tensor.
 * tensors  [n], with the size of the first; copied, except for the elements
 * opts     NULL for all defaults; copied
 * owner    the caller frees *group_out with trib_group_free before trib_free_comm
 * thread   collective: the ranks compare their descriptions, so every rank calls it, in
 *          the same order as other operations
 * errors   TRIB_ERR_INVALID, TRIB_ERR_CODEC, …: the message names the tensor; also
 *          TRIB_ERR_INVALID: another rank has failed or describes another group; the
 *          communicator is unchanged
 * paper    buckets: Li et al., PyTorch Distributed, VLDB 2020; agreement on ready
 *          tensors: Sergeev & Del Balso, Horovod, 2018; priorities: Peng et al., a
 *          generic communication scheduler (ByteScheduler), SOSP 2019
 */
TRIB_API trib_status_t trib_group_create(trib_comm_t *comm,
                                         const trib_tensor_t *tensors, size_t n,
                                         const trib_group_opts_t *opts,
                                         trib_group_t **group_out);

/**
 * trib_group_start - start a step.
 *
 * owner    the buffers of a tensor belong to the library until that tensor is done. If
 *          a step fails although its communicator has not, they do until
 *          trib_group_free returns
 * errors   TRIB_ERR_BUSY: in a step; TRIB_ERR_INVALID, TRIB_ERR_OVERLAP: the buffers of
 *          a tensor, which the message names, and nothing was started; the error with
 *          which the previous step failed
 */
TRIB_API trib_status_t trib_group_start(trib_group_t *group);

/**
 * trib_group_start_with - start a step with the given buffers.
 *
 * They replace the buffers of the tensors for this step. Other ranks may call
 * trib_group_start instead.
 * sends    [n]; NULL, or NULL for a tensor: in place
 * recvs    [n]; read before the call returns
 * errors   as trib_group_start
 */
TRIB_API trib_status_t trib_group_start_with(trib_group_t *group,
                                             const void *const *sends,
                                             void *const *recvs);

/**
 * trib_group_ready - mark the elements of a tensor's send as final.
 *
 * For groups with a feed other than WHOLE, once for each tensor and step, in any order.
 * A fused tensor is copied during the call.
 * errors   TRIB_ERR_INVALID: no such tensor, not started, or already marked
 */
TRIB_API trib_status_t trib_group_ready(trib_group_t *group, size_t tensor);

/**
 * trib_group_test - return TRIB_OK if the step is done, else TRIB_INPROGRESS.
 *
 * thread   the communicator's; does not block
 * errors   the error with which the communicator failed
 */
TRIB_API trib_status_t trib_group_test(trib_group_t *group);

/**
 * trib_group_test_tensor - return TRIB_OK if the result of a tensor is in recv.
 *
 * Returns TRIB_INPROGRESS if it is not.
 * thread   the communicator's; does not block
 * errors   as trib_group_test
 */
TRIB_API trib_status_t trib_group_test_tensor(trib_group_t *group, size_t tensor);

/**
 * trib_group_wait - block until the step is done.
 *
 * errors   TRIB_ERR_INVALID: a tensor was not marked ready, and the step continues; the
 *          error with which the communicator failed
 */
TRIB_API trib_status_t trib_group_wait(trib_group_t *group);

/**
 * trib_group_wait_tensor - block until the result of one tensor is in recv.
 *
 * errors   as trib_group_wait; also TRIB_ERR_INVALID: all ranks wait for tensors, none
 *          of these tensors is ready on all ranks, and the step has failed
 */
TRIB_API trib_status_t trib_group_wait_tensor(trib_group_t *group, size_t tensor);

/**
 * trib_group_notify - set a callback that runs when trib_group_test should be called.
 *
 * The callback runs whenever trib_group_test has work to do, and at the end of a step.
 * Set it before trib_group_start. It must be short, because other threads may wait for
 * its return, and must call neither the group nor its communicator. Usually it wakes
 * the thread that calls trib_group_test.
 * fn       receives arg and TRIB_INPROGRESS when an operation of the step has ended;
 *          or, once per step, the final status of the step. NULL: none
 * thread   the communicator's. fn runs on the thread that finds the operation done: the
 *          progress thread, or a caller of the communicator. A call of the group
 *          detects the end of the step, and fn runs in that call
 * errors   TRIB_ERR_BUSY: in a step; TRIB_ERR_NO_MEMORY
 */
TRIB_API trib_status_t trib_group_notify(trib_group_t *group, trib_done_fn fn,
                                         void *arg);

/**
 * trib_group_fd - return a descriptor that is readable if trib_group_test has work.
 *
 * For poll() and epoll. The descriptor is also readable from the end of a step to the
 * next start. Do not read from it: trib_group_test collects finished operations, starts
 * the next ones, and returns whether the step is done. A wakeup may be spurious. With
 * progress=caller, some thread must call trib_progress.
 * owner    the group; trib_group_free closes it
 * thread   the communicator's
 * errors   as trib_group_notify; TRIB_ERR_SYSTEM: no free descriptor
 */
TRIB_API trib_status_t trib_group_fd(trib_group_t *group, int *fd_out);

/* Work of a group. The counters from steps on only grow. */
typedef struct trib_group_stats {
    size_t size; /* sizeof(trib_group_stats_t), set by the caller */
    uint64_t tensors; /* of the group */
    uint64_t buckets; /* now */
    uint64_t fused; /* tensors that share a bucket now */
    uint64_t coded; /* tensors that have a codec */
    uint64_t steps; /* finished steps */
    uint64_t copied_bytes; /* copied into and out of fused buckets. Buckets whose
                            * buffers are contiguous need no copies */
    uint64_t agreements; /* all-reduces by which ranks agreed on ready buckets */
    uint64_t overtaken; /* buckets overtaken by a bucket that became ready later */
} trib_group_stats_t;

/**
 * trib_group_stats - return the work done by a group.
 *
 * stats    size is set by the caller
 * errors   TRIB_ERR_INVALID: stats is NULL, or its size is wrong
 */
TRIB_API trib_status_t trib_group_stats(const trib_group_t *group,
                                        trib_group_stats_t *stats);

/**
 * trib_group_explain - list each bucket with its tensors, bytes, codec and priority.
 *
 * The text has one line for each bucket.
 * text     receives at most `bytes` bytes including the terminating zero
 * errors   TRIB_ERR_INVALID: no room
 */
TRIB_API trib_status_t trib_group_explain(const trib_group_t *group, char *text,
                                          size_t bytes);

/**
 * trib_group_state_save - save this rank's state of all plans of the group.
 *
 * The state includes the assignment of tensors to buckets. A run continues with exactly
 * the same results if all ranks load their states into a group of the same tensors and
 * options, as with trib_plan_state_save.
 * state    receives *bytes_out bytes; NULL: only *bytes_out is wanted
 * errors   TRIB_ERR_BUSY: in a step; TRIB_ERR_OVERFLOW: the buffer is too small
 */
TRIB_API trib_status_t trib_group_state_save(trib_group_t *group, void *state,
                                             size_t bytes, size_t *bytes_out);

/**
 * trib_group_state_load - continue from a state that trib_group_state_save returned.
 *
 * Also restores the assignment of tensors to buckets.
 * errors   TRIB_ERR_BUSY: in a step; TRIB_ERR_INVALID, with the group unchanged: the
 *          bytes are damaged, or belong to other tensors; the message names the first
 */
TRIB_API trib_status_t trib_group_state_load(trib_group_t *group, const void *state,
                                             size_t bytes);

/**
 * trib_group_state_move - continue from the state of a group of another communicator.
 *
 * For a group of the same tensors and options that was recreated after
 * trib_comm_shrink. The state of the tensors' codecs moves as by trib_plan_state_move.
 * from     NULL on a rank without an old group
 * steps    starts of the group, as described in trib_plan_state_move
 * thread   collective over group's communicator; blocks
 * errors   TRIB_ERR_INVALID on all ranks: the groups or steps differ, or a rank cannot
 *          undo a step that it has begun; free the new group in that case;
 *          TRIB_ERR_BUSY: a group is in a step; errors with which the new communicator
 *          failed
 */
TRIB_API trib_status_t trib_group_state_move(trib_group_t *group, trib_group_t *from,
                                             uint64_t steps);

/**
 * trib_group_move - recreate a group in another communicator, with its state.
 *
 * The new group has the tensors of the old one with their codecs, its options, its
 * callback `done` and its timeout_ms. Codec state moves as by trib_group_state_move. A
 * rank without an old group gets the same group as the others, without a callback and a
 * time limit. Call trib_group_notify and trib_group_fd again. Buffers are not carried
 * over, because memory of trib_alloc belongs to the old communicator.
 * from     is not changed, and the caller frees it; NULL on a rank without an old
 *          group: a newcomer
 * sends, recvs [n] buffers of the tensors, as of trib_group_start_with. recvs is NULL:
 *          only trib_group_start_with starts the group
 * steps    as of trib_group_state_move
 * owner    the caller frees *group_out with trib_group_free before trib_free_comm
 * thread   collective over comm; blocks
 * errors   as trib_group_create and trib_group_state_move, on all ranks, and *group_out
 *          is NULL; also TRIB_ERR_INVALID: the ranks' old groups differ
 */
TRIB_API trib_status_t trib_group_move(trib_comm_t *comm, trib_group_t *from,
                                       const void *const *sends, void *const *recvs,
                                       uint64_t steps, trib_group_t **group_out);

/**
 * trib_group_free - free a group and its plans; NULL is allowed.
 *
 * errors   TRIB_ERR_BUSY: in a step. After a failed step the call blocks until the
 *          started operations end, as long as other ranks take part in them
 */
TRIB_API trib_status_t trib_group_free(trib_group_t *group);

#ifdef __cplusplus
}
#endif

#endif
