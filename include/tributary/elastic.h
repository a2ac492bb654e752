/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When ranks are lost or come: which ones, how the others go on, and whether all have
 * the same state.
 *
 *     while (step <= steps) {
 *         prepare(in, step);
 *         st = step < steps ? trib_allreduce(comm, in, out, n, TRIB_F32, TRIB_SUM)
 *                           : trib_barrier(comm); // no rank leaves before all are done
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
 * When a rank is lost, some of the others may have the result of a step that others
 * have not. All of them repeat the first step that a rank has not finished, so a
 * program keeps what it needs to start from there.
 */
#ifndef TRIBUTARY_ELASTIC_H
#define TRIBUTARY_ELASTIC_H

#include <tributary/coll.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * trib_comm_lost - which ranks are lost, as numbers.
 *
 * A rank is lost that has died, was stopped for stop_timeout_ms, cannot be reached any
 * more, or has left by trib_free_comm while the others went on. The answer is what this
 * rank knows now: by itself about ranks that it has exchanged data with, and from the
 * rank that told it of the failure. Of several that are lost at once it may know some
 * at first, and more at the next call. Looks, and never blocks; a loss that it finds
 * ends the communicator, as any call does. A rank that finds its own number was counted
 * as lost by another one, having been stopped itself.
 * ranks    [cap] receives the lowest of them, by their numbers in comm; NULL if cap is
 *          0
 * n_out    how many there are; may be more than cap
 * thread   the communicator's
 * errors   TRIB_ERR_INVALID: n_out or ranks is NULL, cap is negative
 */
TRIB_API trib_status_t trib_comm_lost(trib_comm_t *comm, int *ranks, int cap,
                                      int *n_out);

/**
 * trib_comm_shrink - make a communicator of the ranks that are left.
 *
 * All ranks that are left call it, when a call has told them of the failure or when
 * they like: a rank that knows of no loss takes part all the same. They agree on who is
 * left, over the connections that they have: no rank is needed that may have died, and
 * no port. Ranks may be lost meanwhile, whichever they are. All calls that return
 * TRIB_OK give a communicator of the same ranks, in the order that they had in comm;
 * else each gives an error. If one of these ranks dies right then, the smaller
 * communicator fails in its first operation, and is shrunk in its turn.
 *
 * comm is over, also where no rank was lost: a rank in one of its operations gets an
 * error (TRIB_ERR_ABORTED, where nothing else was wrong). All that is left for it is
 * trib_plan_move, trib_plan_state_move, trib_plan_state_save, trib_plan_free,
 * trib_free, trib_stats and trib_free_comm, in this order or at any time later. Other
 * communicators that were made of it by trib_split go on, or are shrunk by themselves.
 * The smaller one has the settings of comm; where these name a service, it is a new job
 * there.
 *
 * Plans, groups and requests are comm's. trib_plan_move, trib_group_move and
 * trib_allreduce_named_move make them anew in the smaller one, with what their codecs
 * hold back, and all else that they keep. Where roots, counts or codecs are to be
 * others, make a plan and call trib_plan_state_move.
 *
 * Nothing that was under way in comm is in a result of the smaller communicator. An
 * operation that has failed may have changed its recv: to do it again, start from the
 * input; where it was in place, the caller has to have kept that. Memory of trib_alloc
 * is comm's: a rank that was stopped, and goes on later, may still finish a write into
 * it.
 *
 * A rank that was stopped or suspended until the others gave it up, and goes on later,
 * gets TRIB_ERR_PEER_LOST from here: they tell it, or it finds that it was away for
 * about TRIB_STOP_TIMEOUT_MS and that a peer is gone. Two parts of a network that is
 * cut both go on, each with its ranks. If only TCP connections were cut, and heartbeats
 * show that ranks of the other part run, a part continues that has more than half of
 * comm's ranks, or half of them with rank 0; all other ranks get TRIB_ERR_PEER_LOST.
 * smaller_out NULL after an error; the caller frees it with trib_free_comm
 * thread   the communicator's; blocks until all that are left have called it, at most
 *          timeout_ms
 * errors   trib_last_error(NULL) has the sentence. TRIB_ERR_TIMEOUT: a rank has not
 *          called it; it may be called again, by all. TRIB_ERR_PEER_LOST: the others
 *          go on without this rank; or this one is alone, and others have left by
 *          trib_free_comm. TRIB_ERR_INVALID: called after trib_free or trib_deregister
 *          on a communicator that had failed, or a second time after TRIB_OK.
 *          TRIB_ERR_UNSUPPORTED: more than 1568 ranks. What another rank's wireup gives
 * paper    Bland et al., EuroMPI 2012 (ULFM); Chandra & Toueg, JACM 43, 1996
 */
TRIB_API trib_status_t trib_comm_shrink(trib_comm_t *comm, trib_comm_t **smaller_out);

/*
 * A port at which a rank of a job listens for newcomers, in a thread. The communicators
 * that are made of the first one by trib_comm_grow and trib_comm_shrink take their
 * newcomers there, too. If its rank is lost, another one opens a listener of its own.
 */
typedef struct trib_listener trib_listener_t;

/**
 * trib_listener_open - let newcomers come to this rank.
 *
 * They are let in if they have the secret, which the text tells, the same
 * version, and the same settings where ranks must agree. Others hear what is wrong with
 * them, and the job hears of a stranger in its log. Nobody else may read the text, as
 * with trib_root_create: the secret is in it.
 * bind     as of trib_root_create_at: the address and the ports; NULL: any
 * owner    the caller: trib_listener_close, before or after comm is freed
 * thread   the communicator's; does not block. A listener is for one thread at a time
 * errors   as trib_root_create_at; TRIB_ERR_BOOT: cannot listen there;
 *          TRIB_ERR_NO_MEMORY
 */
TRIB_API trib_status_t trib_listener_open(trib_comm_t *comm, const char *bind,
                                          trib_listener_t **listener_out);
/**
 * trib_listener_text - where newcomers come to: the text for trib_join.
 *
 * It has less than TRIB_ROOT_TEXT_MAX bytes.
 * owner    the listener; valid until it is closed
 */
TRIB_API const char *trib_listener_text(const trib_listener_t *listener);
/**
 * trib_listener_waiting - how many newcomers wait to be taken in.
 *
 * Never blocks.
 */
TRIB_API int trib_listener_waiting(trib_listener_t *listener);
/**
 * trib_listener_close - hang up on those that wait, and free the listener.
 *
 * NULL is allowed.
 */
TRIB_API void trib_listener_close(trib_listener_t *listener);

/**
 * trib_comm_grow - take in the newcomers that wait, at a point where no operation is
 * under way.
 *
 * All ranks call it, in the order of their operations. If nobody waits, that costs an
 * all-gather of 4 bytes, so it may be called at every step. The members keep their
 * numbers, the newcomers have those behind. TRIB_OK is the same on all ranks, with a
 * communicator of all or with NULL: nobody has come, or one that came could not go on.
 * comm then goes on as before, and a warning says why; other newcomers come again by
 * themselves. A newcomer that is stopped or silent costs one call stop_timeout_ms and a
 * second.
 *
 * With a bigger communicator comm is over, as after trib_comm_shrink: so are its plans,
 * groups and memory. The bigger one has the settings of comm; where these name a
 * service, it is a new job there. Newcomers that die right then are lost in its first
 * operation.
 *
 * After an error comm has failed: a member was lost meanwhile. All that are left
 * call trib_comm_shrink.
 * listener of this rank; NULL: it has none. If newcomers wait at several, those of the
 *          lowest rank are taken in, the others in the next call
 * most     newcomers to take in, at this rank's listener, those first that came first
 * bigger_out the caller frees it with trib_free_comm
 * thread   the communicator's; blocks
 * errors   trib_last_error(NULL) has the sentence. TRIB_ERR_INVALID,
 *          TRIB_ERR_UNSUPPORTED (more than 1568 ranks): nothing happened. Else as of a
 *          collective
 * paper    Castain et al., Parallel Computing 79, 2018 (PMIx); as ncclCommGrow
 */
TRIB_API trib_status_t trib_comm_grow(trib_comm_t *comm, trib_listener_t *listener,
                                      int most, trib_comm_t **bigger_out);

/**
 * trib_join - become a rank of a job that runs.
 *
 * Waits until its ranks call trib_comm_grow, at most boot_timeout_ms. The number of
 * this rank and how many there are come from the job.
 * text     of trib_listener_text; NULL: that of opts, or of TRIB_ROOT
 * opts     as of trib_init; rank_plus_1, ranks and allgather do not count. NULL: all
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
 * trib_comm_members - how many ranks were there before the last trib_comm_grow.
 *
 * The newcomers are those from this number on, also in the answer of trib_join. Of a
 * communicator that was made in another way it is all ranks.
 */
TRIB_API int trib_comm_members(const trib_comm_t *comm);

/**
 * trib_comm_abort - end all operations of a communicator, on all ranks.
 *
 * For what is stuck, or not wanted any more: a plan, a blocking call, a request, a step
 * of a group. They end in TRIB_ERR_ABORTED on this rank and on all others, whose
 * sentence names this rank and says why. The communicator is over, and no rank is lost:
 * trib_comm_shrink gives another one of all ranks, and trib_plan_state_move says how to
 * do what was under way again. For a limit of time see trib_desc_t.timeout_ms.
 * why      a clause of at most 119 bytes for the sentence; NULL: none
 * thread   any, also while others are in calls of comm; with TRIB_SERVICE the
 *          communicator's. Waits until the call that makes progress has seen it,
 *          mostly some microseconds
 * errors   none where the communicator has failed before: its sentence stays;
 *          TRIB_ERR_INVALID: in a forked child
 */
TRIB_API trib_status_t trib_comm_abort(trib_comm_t *comm, const char *why);

/**
 * trib_plan_state_move - go on from the state of a plan of another communicator.
 *
 * For a plan that was made anew after trib_comm_shrink. Residual, momentum, the number
 * of steps and the key of what is drawn at random go on; a rank's residual stays as it
 * is, bit for bit, also of op mean. Of ef21 the sum of all h is made anew, of the ranks
 * that are left. What a codec has learnt (powersgd, gradiveq, lgc) goes on if the
 * former rank 0 is left and no start is dropped; else it learns anew,
 * with a step of its own, and a warning says so. Of reduce-scatter the blocks of lost
 * ranks are dropped. What lost ranks had held back is lost.
 *
 * The caller chooses what becomes of starts that some ranks have not ended, by a number
 * that all ranks find by trib_allreduce:
 *
 *   redone   steps is the least of the ranks' numbers of starts that they have ended.
 *            The state is as it was behind that start, and the next one is to be done
 *            again by all, also by those that had its result. A rank that had begun it
 *            needs trib_opts_t.rewind, if the plan has a state
 *   dropped  steps is the largest of the numbers of starts that they have begun. The
 *            state is what it is now: what was sent is gone, and what was not is still
 *            held back
 *
 * Several plans that a program starts once in each of its steps all get the same
 * number, that of steps which all ranks have done whole, or have begun.
 * plan     made of the same collective, count, dtype, op, codec, feedback and name
 * from     NULL on a rank that has none: a newcomer, whose residual is 0. It may be
 *          moved again, if the new communicator fails meanwhile; else free it
 * steps    starts of `from`, with those of a state that it has loaded; plan has as many
 * thread   collective over plan's communicator; blocks
 * errors   TRIB_ERR_INVALID on all ranks, and nothing has changed: plans or steps
 *          differ, or a rank cannot take back what it has begun; the sentence says
 *          which.
 *          TRIB_ERR_BUSY: a plan runs. TRIB_ERR_UNSUPPORTED: a plan of trib_send, of
 *          neighbors or of pairs, which keeps nothing. What ends the new communicator
 */
TRIB_API trib_status_t trib_plan_state_move(trib_plan_t *plan, trib_plan_t *from,
                                            uint64_t steps);

/**
 * trib_plan_move - make a plan in another communicator, as one of this rank was made,
 * and go on from its state.
 *
 * The new plan has the description of the old one: collective, count, dtype, op, codec,
 * feedback, algorithm, chunk, feed, quorum, name, seed, parameter and limit of time.
 * The root is the same process, by the number that it has now; factors are those that
 * were set last (trib_plan_set_scale). The state moves as by trib_plan_state_move. A
 * rank without an old plan gets the same plan as the others; its own factor is 1. For
 * communicators that trib_comm_shrink, trib_comm_grow or trib_split has made, and any
 * others that share a rank.
 *
 * The buffers are not carried over, as memory of trib_alloc is the old communicator's,
 * nor is the function of trib_plan_notify. Counts and offsets for each rank, a root
 * that is lost, and plans of messages, neighbors and pairs give an error that says what
 * to call instead.
 * comm     of the new plan
 * from     is left as it is, and is to be freed; NULL on a rank that has none: a
 *          newcomer
 * send, recv buffers of the new plan, as in trib_desc_t; both NULL: only
 *          trib_plan_start_with starts it
 * steps    as of trib_plan_state_move
 * owner    the caller frees *plan_out with trib_plan_free before trib_free_comm
 * thread   collective over comm; blocks
 * errors   as trib_plan_create and trib_plan_state_move, on all ranks, and *plan_out is
 *          NULL; TRIB_ERR_INVALID, too: the ranks' old plans differ, or the root is not
 *          in comm; TRIB_ERR_UNSUPPORTED: a plan that cannot be carried over
 */
TRIB_API trib_status_t trib_plan_move(trib_comm_t *comm, trib_plan_t *from,
                                      const void *send, void *recv, uint64_t steps,
                                      trib_plan_t **plan_out);

/**
 * trib_allreduce_named_move - go on with a vector of trib_allreduce_named in another
 * communicator.
 *
 * Its plan is made there under the same name, as by trib_plan_move, before the first
 * call of that name.
 * from     where the vector was summed; NULL on a newcomer. A rank that has not
 *          summed it there holds nothing back
 * steps    calls of that name, as of trib_plan_state_move
 * thread   collective over comm; blocks
 * errors   as trib_plan_move; TRIB_ERR_INVALID, too: comm has summed a vector of that
 *          name
 */
TRIB_API trib_status_t trib_allreduce_named_move(trib_comm_t *comm, trib_comm_t *from,
                                                 const char *name, uint64_t steps);

/**
 * trib_hash - 64 bits of these bytes (XXH3), the same on every machine of equal byte
 * order.
 *
 * before   0, or the hash of what comes before: so many tensors have one hash
 * thread   any
 */
TRIB_API uint64_t trib_hash(const void *bytes, size_t n, uint64_t before);

/**
 * trib_comm_same - do all ranks have the same state, and which ranks have another?
 *
 * Parameters that all ranks should share may differ after a mistake of the program, a
 * restart from other files, or a memory that has failed. One all-gather of 8 bytes; no
 * difference is an error of this call.
 * hash     of this rank's state, by trib_hash
 * ranks    [cap] receives the lowest of those whose hash differs from the one that most
 *          ranks have, or, of several that as many have, from that of the lowest rank;
 *          NULL if cap is 0. The same on all ranks
 * n_out    how many differ; may be more than cap
 * thread   collective over the communicator, in the order of its operations; blocks
 * errors   TRIB_ERR_INVALID: n_out or ranks is NULL, cap is negative; as trib_allgather
 */
TRIB_API trib_status_t trib_comm_same(trib_comm_t *comm, uint64_t hash, int *ranks,
                                      int cap, int *n_out);

/**
 * trib_comm_sync - give the state that most members have to the ranks that have
 * another.
 *
 * For parameters after trib_comm_grow, or after a difference that trib_comm_same shows.
 * Only members vote (trib_comm_members), so newcomers never win; if as many have one
 * state as another, that of the lowest rank counts. Ranks whose hash is right send and
 * receive no more than hashes, but for the lowest of them. What has arrived is verified
 * by its hash.
 * state    [bytes] of this rank, of the same length on all; is overwritten where it
 *          differs
 * n_out    how many ranks have got the state of others; NULL: not asked
 * thread   collective over the communicator, in the order of its operations; blocks
 * errors   TRIB_ERR_INVALID: state is NULL; TRIB_ERR_PROTOCOL: a rank still differs
 *          afterwards, or gave another length; as trib_split and trib_broadcast
 */
TRIB_API trib_status_t trib_comm_sync(trib_comm_t *comm, void *state, size_t bytes,
                                      int *n_out);

#ifdef __cplusplus
}
#endif

#endif
