/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups of tensors: the gradients of a model as one object.
 *
 * Each tensor has a name, a dtype, a size, perhaps a codec and a priority. The group
 * fuses small tensors into buckets, sums a bucket once all of its tensors are ready on
 * all ranks, and gives the results back tensor by tensor.
 *
 *     trib_group_create(comm, tensors, n, &opts, &group);
 *     trib_group_start(group);                  // at every step …
 *     for (i = n; i-- > 0;)
 *         trib_group_ready(group, i);           // … as each gradient is final
 *     trib_group_wait(group);
 *
 * Ranks may mark their tensors in different orders. Before a bucket is started the
 * ranks agree, by a small all-reduce, on the buckets that are ready everywhere; all
 * start these in the order of priority. So a late and urgent tensor overtakes all
 * buckets that have not been started. With TRIB_FEED_WHOLE nothing is agreed on.
 *
 * Threads: one at a time, any that may use the communicator. A call drives the whole
 * group: it starts the buckets that have become ready, and takes the results that have
 * come. Between calls the progress thread goes on with what was started.
 *
 * Between trib_group_start and the end of the step the communicator belongs to the
 * group: a step in which something else is started on it fails, unless the feed is
 * WHOLE. Use trib_split for a second lane.
 */
#ifndef TRIBUTARY_GROUP_H
#define TRIBUTARY_GROUP_H

#include <tributary/coll.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_group trib_group_t;

#define TRIB_TENSOR_NAME_MAX 255 /* characters */

/* A tensor. The same on all ranks, but for the buffers. */
typedef struct trib_tensor {
    size_t size; /* sizeof(trib_tensor_t) */
    const char *name; /* unique in the group: 1 to TRIB_TENSOR_NAME_MAX printable
                       * ASCII characters, such as "layer1.0.conv1.weight" */
    const void *send; /* NULL or recv: in place */
    void *recv; /* NULL: only trib_group_start_with starts the group */
    size_t count; /* elements; may be 0 */
    trib_dtype_t dtype;
    int dims; /* number of dimensions; 0: not said, which counts as 2 */
    int priority; /* higher ones are started first, and fused with their like */
    const char *codec; /* NULL: as the rules say */
    const char *feedback; /* of that codec, as trib_desc_t.feedback */
} trib_tensor_t;

#define TRIB_TENSOR_INIT \
    {sizeof(trib_tensor_t), NULL, NULL, NULL, 0, TRIB_F32, 0, 0, NULL, NULL}

/* A rule gives a codec to the tensors that fit all it says. The first that fits
 * holds. */
typedef struct trib_group_rule {
    size_t size; /* sizeof(trib_group_rule_t) */
    const char *name; /* shell pattern as in fnmatch(3), such as "*.bias"; NULL: any */
    size_t count_min; /* elements, at least */
    size_t count_max; /* at most; 0: no limit */
    int dims_min; /* dimensions, at least */
    int dims_max; /* at most; 0: no limit */
    const char *codec; /* "none", "topk:ratio=0.01", … */
    const char *feedback; /* as trib_desc_t.feedback */
} trib_group_rule_t;

#define TRIB_GROUP_RULE_INIT \
    {sizeof(trib_group_rule_t), NULL, 0, 0, 0, 0, NULL, NULL}

/* Called once for each tensor of a step: its result is in recv, or the step has failed.
 * It is called within a call of the group, by its thread, and must call neither the
 * group nor its communicator. */
typedef void (*trib_group_fn)(void *arg, size_t tensor, trib_status_t status);

/* Options of a group. The same on all ranks, but for done, arg and timeout_ms. */
typedef struct trib_group_opts {
    size_t size; /* sizeof(trib_group_opts_t) */
    const char *name; /* of the group in sentences; NULL: none */
    trib_op_t op;
    double parameter; /* of the op, as in trib_desc_t */
    trib_feed_t feed; /* WHOLE: all tensors are ready at trib_group_start; else each is
                       * by trib_group_ready, the first or the last mostly first */
    size_t bucket_bytes; /* most of a bucket that is fused; 0: 4 MiB. About so much is
                          * started at a time, which urgent tensors wait for */
    size_t alone_bytes; /* a tensor of so many bytes is a bucket by itself, which needs
                          * no copies; 0: 64 KiB; 1: nothing is fused */
    unsigned cycle_us; /* of tensors that become ready further apart than this none
                          * are fused: buckets are formed anew, by time, from the first
                          * step. Runs may then round sums differently.
                          * 0: buckets are formed by bytes alone */
    const trib_group_rule_t *rules; /* [n_rules], with the size of the first */
    size_t n_rules;
    const char *codec; /* of tensors that no rule fits: of these, those that sum and
                           * mean floats, have at least 2 dimensions and at least
                           * TRIB_CODEC_ELEMENTS_MIN elements. NULL: the
                           * configuration's */
    const char *feedback; /* of that codec; NULL: the configuration's */
    const char *algorithm; /* NULL: the configuration's */
    uint64_t seed; /* as trib_desc_t.seed */
    trib_group_fn done; /* or NULL */
    void *arg;
    int timeout_ms; /* a step that has not ended after so long, counted from
                     * trib_group_start, ends in TRIB_ERR_TIMEOUT on all ranks, and the
                     * sentence names a tensor that it waits for; looked at while
                     * something of it runs, and in calls of the group. 0: when nothing
                     * has moved for TRIB_TIMEOUT_MS. Ranks may give different ones */
    int reserved; /* 0 */
} trib_group_opts_t;

#define TRIB_GROUP_OPTS_INIT \
    { \
        sizeof(trib_group_opts_t), NULL, TRIB_SUM, 0, TRIB_FEED_WHOLE, 0, 0, 0, NULL, \
            0, NULL, NULL, NULL, 0, NULL, NULL, 0, 0 \
    }

/**
 * trib_group_create - make a group of n tensors, and all plans that it needs.
 *
 * A tensor with a codec is a bucket by itself: what its codec and feedback keep belongs
 * to the tensor. Tensors without a codec, of one dtype and one priority, that are
 * smaller than alone_bytes, are fused with their neighbors by index. Where TRIB_CHECK
 * is set each tensor is a bucket by itself, so that its sentence names the tensor.
 * tensors  [n], with the size of the first; copied, but for the elements
 * opts     NULL for all defaults; copied
 * owner    the caller frees *group_out with trib_group_free before trib_free_comm
 * thread   collective: the ranks compare their descriptions, so every rank calls it, in
 *          the same order as other operations
 * errors   TRIB_ERR_INVALID, TRIB_ERR_CODEC, …: the sentence names the tensor;
 *          TRIB_ERR_INVALID, too: another rank has failed, or describes another group,
 *          and the communicator is as it was
 * paper    buckets: Li et al., PyTorch Distributed, VLDB 2020; agreement on what is
 *          ready: Sergeev & Del Balso, Horovod, 2018; priorities: Peng et al., a
 *          generic communication scheduler (ByteScheduler), SOSP 2019
 */
TRIB_API trib_status_t trib_group_create(trib_comm_t *comm,
                                         const trib_tensor_t *tensors, size_t n,
                                         const trib_group_opts_t *opts,
                                         trib_group_t **group_out);

/**
 * trib_group_start - begin a step.
 *
 * owner    the library has the buffers of a tensor until that tensor is done
 * errors   TRIB_ERR_BUSY: in a step; TRIB_ERR_INVALID, TRIB_ERR_OVERLAP: the buffers of
 *          a tensor, which the sentence names, and nothing has begun; why the step
 *          before has failed
 */
TRIB_API trib_status_t trib_group_start(trib_group_t *group);

/**
 * trib_group_start_with - begin a step with other buffers than those of the tensors.
 *
 * Ranks need not do it alike.
 * sends    [n]; NULL, or NULL for a tensor: in place
 * recvs    [n]; read before the call returns
 * errors   as trib_group_start
 */
TRIB_API trib_status_t trib_group_start_with(trib_group_t *group,
                                             const void *const *sends,
                                             void *const *recvs);

/**
 * trib_group_ready - the elements of this tensor's send are final.
 *
 * For groups with a feed other than WHOLE, once for each tensor and step, in any order.
 * A tensor that was fused is copied now.
 * errors   TRIB_ERR_INVALID: no such tensor, not started, or marked before
 */
TRIB_API trib_status_t trib_group_ready(trib_group_t *group, size_t tensor);

/**
 * trib_group_test - TRIB_OK when the step is done, TRIB_INPROGRESS when not yet.
 *
 * thread   the communicator's; does not block
 * errors   what ended the communicator
 */
TRIB_API trib_status_t trib_group_test(trib_group_t *group);

/**
 * trib_group_test_tensor - TRIB_OK when the result of one tensor is in recv.
 *
 * thread   the communicator's; does not block
 * errors   as trib_group_test
 */
TRIB_API trib_status_t trib_group_test_tensor(trib_group_t *group, size_t tensor);

/**
 * trib_group_wait - block until the step is done.
 *
 * errors   TRIB_ERR_INVALID: a tensor was not marked ready, and the step goes on; what
 *          ended the communicator
 */
TRIB_API trib_status_t trib_group_wait(trib_group_t *group);

/**
 * trib_group_wait_tensor - block until the result of one tensor is in recv.
 *
 * errors   as trib_group_wait; TRIB_ERR_INVALID, too: all ranks wait for tensors of
 *          which none is ready on all ranks, and the step has failed
 */
TRIB_API trib_status_t trib_group_wait_tensor(trib_group_t *group, size_t tensor);

/**
 * trib_group_notify - have a function called whenever trib_group_test has something to
 * do, and when a step has ended.
 *
 * It is to be set before trib_group_start. It must be short, as other threads may wait
 * for its return, and must call neither the group nor its communicator: mostly it wakes
 * the thread that calls trib_group_test.
 * fn       gets arg and TRIB_INPROGRESS: an operation of the step has ended; or, once
 *          for each step, how the step has ended. NULL: no function
 * thread   the communicator's. fn runs on the one that finds the operation ended: the
 *          progress thread, or a caller of the communicator; the end of the step is
 *          found by a call of the group, and fn runs in that
 * errors   TRIB_ERR_BUSY: in a step; TRIB_ERR_NO_MEMORY
 */
TRIB_API trib_status_t trib_group_notify(trib_group_t *group, trib_done_fn fn,
                                         void *arg);

/**
 * trib_group_fd - a descriptor for poll() and epoll, readable when trib_group_test has
 * something to do, and from the end of a step to the next start.
 *
 * Do not read it: trib_group_test takes what has ended, starts what follows, and says
 * whether the step is done. It may be readable once more than there is something to do.
 * With progress=caller somebody has to call trib_progress.
 * owner    the group; trib_group_free closes it
 * thread   the communicator's
 * errors   as trib_group_notify; TRIB_ERR_SYSTEM: no descriptor is left
 */
TRIB_API trib_status_t trib_group_fd(trib_group_t *group, int *fd_out);

/* The work of a group. The counters of work only grow. */
typedef struct trib_group_stats {
    size_t size; /* sizeof(trib_group_stats_t), set by the caller */
    uint64_t tensors; /* of the group */
    uint64_t buckets; /* by which they are summed now */
    uint64_t fused; /* tensors that share a bucket now */
    uint64_t coded; /* tensors that have a codec */
    uint64_t steps; /* that are done */
    uint64_t copied_bytes; /* into and out of buckets of several tensors. None where
                            * their buffers lie one behind the other */
    uint64_t agreements; /* all-reduces by which ranks agreed on what is ready */
    uint64_t overtaken; /* buckets before which one was started that was ready
                            * later */
} trib_group_stats_t;

/**
 * trib_group_stats - the work of a group.
 *
 * stats    size is set by the caller
 * errors   TRIB_ERR_INVALID: stats is NULL, or its size is wrong
 */
TRIB_API trib_status_t trib_group_stats(const trib_group_t *group,
                                        trib_group_stats_t *stats);

/**
 * trib_group_explain - a line for each bucket: its tensors, bytes, codec and priority.
 *
 * text     receives at most `bytes` bytes with the final zero
 * errors   TRIB_ERR_INVALID: no room
 */
TRIB_API trib_status_t trib_group_explain(const trib_group_t *group, char *text,
                                          size_t bytes);

/**
 * trib_group_state_save - what all plans of the group keep, of this rank, and the
 * buckets of its tensors.
 *
 * The run goes on with the very results it would have had if all ranks load their
 * states into a group of the same tensors and options, as with trib_plan_state_save.
 * state    receives *bytes_out bytes; NULL: only *bytes_out is wanted
 * errors   TRIB_ERR_BUSY in a step; TRIB_ERR_OVERFLOW: too little room
 */
TRIB_API trib_status_t trib_group_state_save(trib_group_t *group, void *state,
                                             size_t bytes, size_t *bytes_out);

/**
 * trib_group_state_load - go on from what trib_group_state_save gave; takes its
 * buckets, too.
 *
 * errors   TRIB_ERR_BUSY in a step; TRIB_ERR_INVALID, and nothing has changed: the
 *          bytes are damaged, or of other tensors: the sentence names the first
 */
TRIB_API trib_status_t trib_group_state_load(trib_group_t *group, const void *state,
                                             size_t bytes);

/**
 * trib_group_state_move - go on from the state of a group of another communicator.
 *
 * For a group of the same tensors and options that was made anew after
 * trib_comm_shrink: what the codecs of its tensors keep moves as by
 * trib_plan_state_move.
 * from     NULL on a rank that has none
 * steps    of the group, all of them counted, as trib_plan_state_move says
 * thread   collective over group's communicator; blocks
 * errors   TRIB_ERR_INVALID on all ranks: the groups or steps differ, or a rank cannot
 *          take back what it has begun, after which the new group is to be freed;
 *          TRIB_ERR_BUSY: a group is in a step; what ends the new communicator
 */
TRIB_API trib_status_t trib_group_state_move(trib_group_t *group, trib_group_t *from,
                                             uint64_t steps);

/**
 * trib_group_move - make a group in another communicator, as one of this rank was made,
 * and go on from its state.
 *
 * The new group has the tensors of the old one, with their codecs, its options, its
 * function `done` and its timeout_ms. What the codecs keep moves as by
 * trib_group_state_move. A rank without an old group gets the same group as the others,
 * without a function and a limit of time. Call trib_group_notify and trib_group_fd
 * anew. The buffers are not carried over, as memory of trib_alloc is the old
 * communicator's.
 * from     is left as it is, and is to be freed; NULL on a rank that has none: a
 *          newcomer
 * sends, recvs [n] buffers of the tensors, as of trib_group_start_with. recvs is NULL:
 *          only trib_group_start_with starts the group
 * steps    as of trib_group_state_move
 * owner    the caller frees *group_out with trib_group_free before trib_free_comm
 * thread   collective over comm; blocks
 * errors   as trib_group_create and trib_group_state_move, on all ranks, and *group_out
 *          is NULL; TRIB_ERR_INVALID, too: the ranks' old groups differ
 */
TRIB_API trib_status_t trib_group_move(trib_comm_t *comm, trib_group_t *from,
                                       const void *const *sends, void *const *recvs,
                                       uint64_t steps, trib_group_t **group_out);

/**
 * trib_group_free - free a group and its plans; NULL is allowed.
 *
 * errors   TRIB_ERR_BUSY in a step. After a step that has failed it waits for what was
 *          started, as long as other ranks take part in it
 */
TRIB_API trib_status_t trib_group_free(trib_group_t *group);

#ifdef __cplusplus
}
#endif

#endif
