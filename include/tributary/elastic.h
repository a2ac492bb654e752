/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Elastic jobs: detect lost ranks, continue without them, admit newcomers, and compare
 * the state of all ranks.
 *
 *     while (step <= steps) {
 *         prepare(in, step);
 *         st = step < steps ? trib_allreduce(comm, in, out, n, TRIB_F32, TRIB_SUM)
 *                           : trib_barrier(comm); // no rank ends before all are done
 *         step += st == TRIB_OK;
 *         while (st == TRIB_ERR_PEER_LOST || st == TRIB_ERR_ABORTED) {
 *             if ((st = trib_comm_shrink(comm, &smaller)) != TRIB_OK)
 *                 break; // trib_last_error(NULL) says why
 *             trib_free_comm(comm);
 *             comm = smaller;
 *             st = trib_allreduce(comm, NULL, &step, 1, TRIB_U64, TRIB_MIN);
 *         }
 *         if (st != TRIB_OK)
 *             break; // another error: shrinking does not help
 *     }
 *
 * When a rank is lost, some of the others may have the result of a step that the rest
 * lack. All of them repeat the first step that any rank has not finished, so a program
 * must keep the data needed to restart from that step.
 */
#ifndef TRIBUTARY_ELASTIC_H
#define TRIBUTARY_ELASTIC_H

#include <tributary/coll.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * trib_comm_lost - return the numbers of the lost ranks.
 *
 * A rank is lost if it has died, was stopped for stop_timeout_ms, has become
 * unreachable, or has called trib_free_comm while the others continued. The answer is
 * this rank's current knowledge: from ranks with which it has exchanged data, and from
 * the rank that reported the failure. If several ranks are lost at once, a later call
 * may return more of them. Checks without blocking; a loss that the call detects fails
 * the communicator, as in any other call. A rank that finds its own number was itself
 * stopped, and another rank counted it as lost.
 * ranks    [cap] receives the lowest of them, by their numbers in comm; NULL if cap is
 *          0
 * n_out    number of lost ranks; may exceed cap
 * thread   the communicator's
 * errors   TRIB_ERR_INVALID: n_out or ranks is NULL, cap is negative
 */
TRIB_API trib_status_t trib_comm_lost(trib_comm_t *comm, int *ranks, int cap,
                                      int *n_out);

/**
 * trib_comm_shrink - create a communicator of the surviving ranks.
 *
 * All surviving ranks call it, after a call has reported the failure or at any other
 * time; a rank that knows of no loss takes part too. They agree on the survivors over
 * their existing connections, without a port and without relying on any single rank.
 * Further ranks may be lost during the call, whichever they are. All calls that return
 * TRIB_OK create a communicator of the same ranks, in the order of comm; otherwise each
 * call returns an error. If one of these ranks dies at that moment, the first operation
 * of the smaller communicator fails, and that communicator can be shrunk in turn.
 *
 * After the call comm is unusable, even if no rank was lost: a rank in one of its
 * operations gets an error (TRIB_ERR_ABORTED, unless there was another). Only these
 * calls remain, in this order or at any later time: trib_plan_move,
 * trib_plan_state_move, trib_plan_state_save, trib_plan_free, trib_free, trib_stats and
 * trib_free_comm. Other communicators made from comm by trib_split stay usable, or are
 * shrunk separately. The smaller communicator has the settings of comm; if they name a
 * service, it is a new job there.
 *
 * Plans, groups and requests belong to comm. trib_plan_move, trib_group_move and
 * trib_allreduce_named_move recreate them in the smaller communicator with their
 * residuals and all other state. To change roots, counts or codecs, create a plan and
 * call trib_plan_state_move.
 *
 * No result of the smaller communicator includes data of operations that were running
 * in comm. A failed operation may have changed its recv, so repeat it from the input;
 * for an in-place operation the caller must have kept a copy. Memory of trib_alloc
 * belongs to comm: a rank that was stopped and resumes may still finish a write into
 * it.
 *
 * A rank that was stopped or suspended until the others gave up on it gets
 * TRIB_ERR_PEER_LOST from this call when it resumes. The others notify it, or it finds
 * that it was away for about TRIB_STOP_TIMEOUT_MS and that a peer has disconnected.
 * After a network partition, both parts continue, each with its ranks. The exception:
 * only TCP connections broke, and heartbeats show that ranks of the other part still
 * run. Then a part continues only if it has more than half of comm's ranks, or half of
 * them with rank 0. All other ranks get TRIB_ERR_PEER_LOST.
 * smaller_out NULL after an error; the caller frees it with trib_free_comm
 * thread   the communicator's; blocks until all survivors have called it, at most
 *          timeout_ms
 * errors   trib_last_error(NULL) returns the message. TRIB_ERR_TIMEOUT: a rank has not
 *          called it; all ranks may call it again. TRIB_ERR_PEER_LOST: the others
 *          continue without this rank; or this rank is alone, and the others have
 *          disconnected by trib_free_comm. TRIB_ERR_INVALID: called after trib_free or
 *          trib_deregister on a communicator that had failed, or a second time after
 *          TRIB_OK. TRIB_ERR_UNSUPPORTED: more than 1568 ranks. Errors of another
 *          rank's connection setup
 * paper    Bland et al., EuroMPI 2012 (ULFM); Chandra & Toueg, JACM 43, 1996
 */
TRIB_API trib_status_t trib_comm_shrink(trib_comm_t *comm, trib_comm_t **smaller_out);

/*
 * Port at which a rank of a job listens for newcomers, with a thread of its own.
 * Communicators derived from the first one by trib_comm_grow and trib_comm_shrink use
 * the same listener. If its rank is lost, another rank opens a new listener.
 */
typedef struct trib_listener trib_listener_t;

/**
 * trib_listener_open - listen for newcomers on this rank.
 *
 * A newcomer is admitted if it has the secret contained in the text, the same version,
 * and equal values of the settings on which ranks must agree. A rejected newcomer gets
 * the reason; the job logs an unauthenticated peer. As with trib_root_create, keep the
 * text confidential.
 * bind     as of trib_root_create_at: the address and the ports; NULL: any
 * owner    the caller: trib_listener_close, before or after comm is freed
 * thread   the communicator's; does not block. Only one thread at a time may use a
 *          listener
 * errors   as trib_root_create_at; TRIB_ERR_BOOT: cannot listen there;
 *          TRIB_ERR_NO_MEMORY
 */
TRIB_API trib_status_t trib_listener_open(trib_comm_t *comm, const char *bind,
                                          trib_listener_t **listener_out);
/**
 * trib_listener_text - return the address and secret of a listener, for trib_join.
 *
 * The text is shorter than TRIB_ROOT_TEXT_MAX bytes.
 * owner    the listener; valid until it is closed
 */
TRIB_API const char *trib_listener_text(const trib_listener_t *listener);
/**
 * trib_listener_waiting - return the number of newcomers that wait for admission.
 *
 * Never blocks.
 */
TRIB_API int trib_listener_waiting(trib_listener_t *listener);
/**
 * trib_listener_close - disconnect waiting newcomers and free the listener.
 *
 * NULL is allowed.
 */
TRIB_API void trib_listener_close(trib_listener_t *listener);

/**
 * trib_comm_grow - create a communicator that includes the waiting newcomers.
 *
 * All ranks call it, in the order of their operations and while no operation runs.
 * Without newcomers it costs an all-gather of 4 bytes, so it may be called in every
 * step. Members keep their numbers, and newcomers get the numbers after them. TRIB_OK
 * is the same on all ranks, with a communicator of all or with NULL. NULL means that
 * there was no newcomer, or that one could not complete its admission. comm then stays
 * usable, a warning gives the reason, and the other newcomers reconnect by themselves.
 * A newcomer that is stopped or silent delays one call by stop_timeout_ms and a second.
 *
 * With a bigger communicator comm becomes unusable, as after trib_comm_shrink, together
 * with its plans, groups and memory. The bigger communicator has the settings of comm;
 * if they name a service, it is a new job there. A newcomer that dies at that moment is
 * lost in the first operation of the bigger communicator.
 *
 * After an error comm has failed because a member was lost during the call. All
 * surviving ranks then call trib_comm_shrink.
 * listener this rank's listener, or NULL. If newcomers wait at several listeners, those
 *          of the lowest rank are admitted, and the others in the next call
 * most     limit of newcomers to admit from this rank's listener, in order of arrival
 * bigger_out the caller frees it with trib_free_comm
 * thread   the communicator's; blocks
 * errors   trib_last_error(NULL) returns the message. TRIB_ERR_INVALID,
 *          TRIB_ERR_UNSUPPORTED (more than 1568 ranks): nothing happened. Otherwise the
 *          errors of a collective
 * paper    Castain et al., Parallel Computing 79, 2018 (PMIx); as ncclCommGrow
 */
TRIB_API trib_status_t trib_comm_grow(trib_comm_t *comm, trib_listener_t *listener,
                                      int most, trib_comm_t **bigger_out);

/**
 * trib_join - join a running job as a new rank.
 *
 * Blocks until the job's ranks call trib_comm_grow, at most boot_timeout_ms. The job
 * assigns the number of this rank and the number of ranks.
 * text     from trib_listener_text; NULL: from opts, or TRIB_ROOT
 * opts     as of trib_init; rank_plus_1, ranks and allgather are ignored. NULL: all
 *          defaults
 * owner    the caller frees *comm_out with trib_free_comm
 * thread   any; blocks
 * errors   as trib_init; TRIB_ERR_BOOT: no job listens there, or it has not called
 *          trib_comm_grow in time; TRIB_ERR_MISMATCH: another version, secret or
 *          setting; TRIB_ERR_PEER_LOST: the job was lost, or lost a rank while it grew
 */
TRIB_API trib_status_t trib_join(const char *text, const trib_opts_t *opts,
                                 trib_comm_t **comm_out);

/**
 * trib_comm_members - return the number of ranks before the last trib_comm_grow.
 *
 * Newcomers have this number and the following ones, also in a communicator of
 * trib_join. For a communicator created in another way, returns the number of its
 * ranks.
 */
TRIB_API int trib_comm_members(const trib_comm_t *comm);

/**
 * trib_comm_abort - abort all operations of a communicator, on all ranks.
 *
 * For operations that hang or are no longer wanted: a plan, a blocking call, a request,
 * a step of a group. They end with TRIB_ERR_ABORTED on this rank and on all others,
 * whose error message names this rank and the reason. The communicator becomes
 * unusable, but no rank is lost: trib_comm_shrink creates another one of all ranks, and
 * trib_plan_state_move describes how to repeat the aborted operations. An exception is
 * a peer that messages do not reach over UCX or RDMA within TRIB_STOP_TIMEOUT_MS. For a
 * time limit see trib_desc_t.timeout_ms.
 * why      reason for the error message, at most 119 bytes; NULL: none
 * thread   any, also while others are in calls of comm; with TRIB_SERVICE the
 *          communicator's. Blocks until the call that makes progress has noticed the
 *          abort, usually some microseconds
 * errors   none if the communicator has already failed: its message stays;
 *          TRIB_ERR_INVALID: in a forked child
 */
TRIB_API trib_status_t trib_comm_abort(trib_comm_t *comm, const char *why);

/**
 * trib_plan_state_move - continue from the state of a plan of another communicator.
 *
 * For a plan that was recreated after trib_comm_shrink. Residual, momentum, the number
 * of steps and the key of random draws carry over; a rank's residual is unchanged, bit
 * for bit, also for op mean. For ef21 the sum of all h is recomputed from the surviving
 * ranks. Learned parameters (powersgd, gradiveq, lgc) carry over if the former rank 0
 * survives and no start is dropped. Otherwise the codec learns again, with a separate
 * step count, and logs a warning. For reduce-scatter the blocks of lost ranks are
 * dropped. Residuals of lost ranks are lost.
 *
 * The caller decides what happens to starts that some ranks have not finished, by a
 * number on which all ranks agree with trib_allreduce:
 *
 *     redone   steps is the minimum over ranks of the number of finished starts. The
 *              state returns to the end of that start, and all ranks repeat the next
 *              one, including ranks that had its result. A rank that had begun it needs
 *              trib_opts_t.rewind, if the plan has a state
 *     dropped  steps is the maximum over ranks of the number of begun starts. The state
 *              is not changed: data that was sent is lost, and data that was not sent
 *              is still in the residual
 *
 * Several plans that a program starts once per step all get the same number, which
 * counts steps that all ranks have finished, or have begun.
 * plan     created for the same collective, count, dtype, op, codec, feedback and name
 * from     NULL on a rank without an old plan: a newcomer, whose residual is 0. May be
 *          moved again if the new communicator fails during the call; otherwise free it
 * steps    starts of `from`, including those of a state that it has loaded; plan then
 *          has the same count
 * thread   collective over plan's communicator; blocks
 * errors   TRIB_ERR_INVALID on all ranks, with plan unchanged: plans or steps differ,
 *          or a rank cannot undo a start that it has begun; the message says which.
 *          TRIB_ERR_BUSY: a plan is running. TRIB_ERR_UNSUPPORTED: a plan of
 *          trib_send, of neighbors or of pairs, which has no state. Errors with which
 *          the new communicator failed
 */
TRIB_API trib_status_t trib_plan_state_move(trib_plan_t *plan, trib_plan_t *from,
                                            uint64_t steps);

/**
 * trib_plan_move - recreate a plan in another communicator, with its state.
 *
 * The new plan has the description of the old one: collective, count, dtype, op, codec,
 * feedback, algorithm, chunk, feed, quorum, name, seed, parameter and time limit. The
 * root is the same process, by its new number; scale factors are the last ones set
 * (trib_plan_set_scale). The state moves as by trib_plan_state_move. A rank without an
 * old plan gets the same plan as the others, with scale factor 1. For communicators
 * from trib_comm_shrink, trib_comm_grow or trib_split, and any others that share a
 * rank.
 *
 * Buffers are not carried over, because memory of trib_alloc belongs to the old
 * communicator, nor is the callback of trib_plan_notify. Plans with per-rank counts and
 * offsets, plans whose root is lost, and plans of messages, neighbors and pairs return
 * an error that names the call to use instead.
 * comm     communicator of the new plan
 * from     is not changed, and the caller frees it; NULL on a rank without an old plan:
 *          a newcomer
 * send, recv buffers of the new plan, as in trib_desc_t; both NULL: only
 *          trib_plan_start_with starts it
 * steps    as of trib_plan_state_move
 * owner    the caller frees *plan_out with trib_plan_free before trib_free_comm
 * thread   collective over comm; blocks
 * errors   as trib_plan_create and trib_plan_state_move, on all ranks, and *plan_out is
 *          NULL; also TRIB_ERR_INVALID: the ranks' old plans differ, or the root is not
 *          in comm; TRIB_ERR_UNSUPPORTED: a plan that cannot be carried over
 */
TRIB_API trib_status_t trib_plan_move(trib_comm_t *comm, trib_plan_t *from,
                                      const void *send, void *recv, uint64_t steps,
                                      trib_plan_t **plan_out);

/**
 * trib_allreduce_named_move - move a named vector to another communicator.
 *
 * Creates the plan of trib_allreduce_named there under the same name, as
 * trib_plan_move does, before the first call with that name.
 * from     communicator in which the vector was summed; NULL on a newcomer. A rank that
 *          has not summed it there has no residual
 * steps    calls with that name, as of trib_plan_state_move
 * thread   collective over comm; blocks
 * errors   as trib_plan_move; also TRIB_ERR_INVALID: comm has already summed a vector
 *          of that name
 */
TRIB_API trib_status_t trib_allreduce_named_move(trib_comm_t *comm, trib_comm_t *from,
                                                 const char *name, uint64_t steps);

/**
 * trib_hash - return a 64-bit hash (XXH3) of bytes.
 *
 * The same on every machine with the same byte order.
 * before   0, or the hash of the preceding bytes, to combine several tensors
 * thread   any
 */
TRIB_API uint64_t trib_hash(const void *bytes, size_t n, uint64_t before);

/**
 * trib_comm_same - check whether all ranks have the same state.
 *
 * Parameters that all ranks should share may differ after a bug in the program, a
 * restart from different files, or a memory error. Costs one all-gather of 8 bytes; a
 * difference is not an error of this call.
 * hash     hash of this rank's state, by trib_hash
 * ranks    [cap] receives the lowest of the ranks whose hash differs from the most
 *          frequent hash; in a tie, the lowest rank's hash is the reference. NULL if
 *          cap is 0. The same on all ranks
 * n_out    number of differing ranks; may exceed cap
 * thread   collective over the communicator, in the order of its operations; blocks
 * errors   TRIB_ERR_INVALID: n_out or ranks is NULL, cap is negative; as trib_allgather
 */
TRIB_API trib_status_t trib_comm_same(trib_comm_t *comm, uint64_t hash, int *ranks,
                                      int cap, int *n_out);

/**
 * trib_comm_sync - copy the majority's state to the ranks whose state differs.
 *
 * For parameters after trib_comm_grow, or after trib_comm_same found a difference. Only
 * members vote (trib_comm_members), so newcomers never win; in a tie the lowest rank's
 * state wins. Ranks with the right hash exchange only hashes, except for the lowest of
 * them, which sends the state. Received state is verified by its hash.
 * state    [bytes] of this rank, the same length on all; overwritten if it differs
 * n_out    number of ranks that received the state of others; NULL: not wanted
 * thread   collective over the communicator, in the order of its operations; blocks
 * errors   TRIB_ERR_INVALID: state is NULL; TRIB_ERR_PROTOCOL: a rank still differs
 *          afterwards, or passed another length; as trib_split and trib_broadcast
 */
TRIB_API trib_status_t trib_comm_sync(trib_comm_t *comm, void *state, size_t bytes,
                                      int *n_out);

#ifdef __cplusplus
}
#endif

#endif
