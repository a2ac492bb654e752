/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An offloaded plan: a plan of the parent that is run by an inner plan, on agg_comm or
 * on fallback_comm.
 *
 * Threads: unless stated otherwise, the caller is within the gate (offload_gate.h) and
 * does not hold the lock of agg_comm.
 */
#ifndef AGG_CLIENT_OFFLOAD_PLAN_H
#define AGG_CLIENT_OFFLOAD_PLAN_H

#include "agg/client/fallback.h"

/* Elements passed to trib_plan_ready. */
struct trib_ready_range {
    size_t first, count;
};

/* The result of a start with a quorum, kept until all ranks have it. */
struct trib_committed_start {
    struct trib_committed_start *next;
    struct trib_quorum_start *start;
    struct trib_plan *commit; /* barrier of a freed plan, maybe in flight; or NULL */
};

struct trib_offload_plan {
    struct trib_offload *offload;
    struct trib_plan *inner; /* plan on agg_comm or on fallback_comm */
    struct trib_plan *commit; /* barrier after each start; NULL on fallback_comm */
    trib_coll_t coll;
    trib_desc_t desc; /* description of the parent's plan, with copied texts */
    struct trib_offload_plan *next; /* list of offload->plans */
    struct trib_offload_plan *newer; /* list of offload->oldest, the start log */
    bool pending; /* in the start log: not known to be done on all ranks */
    bool open; /* started, and not ended for the user */
    uint64_t committed_upto; /* newest start that the current barrier commits */
    struct trib_committed_start *committed; /* quorum: newest result */
    struct trib_quorum_start *pending_result; /* from another rank; or NULL */
    bool begun; /* this rank had begun the start of pending_result */
    size_t *absent; /* [ranks] absent elements of the newest start */
    uint64_t seq; /* number of the newest start in the start log */
    uint64_t number; /* number of the newest start in the parent (trib_plan_number) */
    bool of_calls; /* shared by blocking calls without a name */
    uint32_t step_before; /* inner->run.now.step before the newest start */
    trib_status_t status; /* of the newest start, after it has ended */
    const void *send; /* sparse plan: a struct trib_pairs_input */
    void *recv;
    bool pairs; /* sparse plan */
    size_t most; /* pairs per rank of a sparse plan; 0: unknown */
    struct trib_ready_range *ready; /* [n_ready] elements ready in the newest start */
    size_t n_ready, max_ready;
};

/* Recovery: fallback.c ------------------------------------------------------------- */

/** trib_offload_recover - after agg_comm has failed: agree with all ranks and continue
 * on fallback_comm. Blocks. */
void trib_offload_recover(struct trib_offload *o);

/** trib_offload_lost - return true if agg_comm has failed and the ranks have yet to
 * recover. */
bool trib_offload_lost(const struct trib_offload *o);

/**
 * trib_offload_rejoin - before a start without agg_comm: poll for aggregators, or
 * rejoin them (rejoin.c).
 *
 * p        plan to be started; all ranks call this before the same starts
 */
void trib_offload_rejoin(struct trib_offload *o, const struct trib_offload_plan *p);

/** trib_offload_leave - rank 0: abandon agg_comm for a better one, as if it had
 * failed. */
void trib_offload_leave(struct trib_offload *o);

/** trib_offload_fail - fail the parent because `by` has failed: a rank is lost. */
void trib_offload_fail(struct trib_offload *o, const struct trib_comm *by,
                       trib_status_t st);

/* Agreements over control_comm: agreement.c ---------------------------------------- */

/**
 * trib_agreement_start, _wait - start an agreement, and wait for its result, o->agreed.
 *
 * Only one agreement may be in flight. All ranks must run the same agreements in the
 * same order. trib_agreement_run does both steps.
 * errors   as control_comm, which then has failed
 */
trib_status_t trib_agreement_start(struct trib_offload *o,
                                   const int64_t say[TRIB_AGREE_WORDS]);
trib_status_t trib_agreement_wait(struct trib_offload *o);
trib_status_t trib_agreement_run(struct trib_offload *o,
                                 const int64_t say[TRIB_AGREE_WORDS]);

/**
 * trib_agreement_check - while this rank waits at the aggregators, check the other
 * ranks.
 *
 * Fails agg_comm if a rank is lost, or if another rank has abandoned agg_comm and waits
 * in an agreement. The caller holds the lock of agg_comm.
 */
void trib_agreement_check(struct trib_offload *o);

/** trib_agreement_close - end agreements before control_comm is freed. */
void trib_agreement_close(struct trib_offload *o);

/* The start log: start_log.c ------------------------------------------------------- */

/** trib_start_log_push - append a plan's new start to the log. */
void trib_start_log_push(struct trib_offload_plan *p);

/** trib_start_log_remove - remove a plan's start from the log, if it is in it. */
void trib_start_log_remove(struct trib_offload_plan *p);

/** trib_start_log_pop - end the oldest start with this status. */
void trib_start_log_pop(struct trib_offload *o, trib_status_t status);

/** trib_start_log_pop_to - commit all starts up to this number. All ranks have done
 * them. */
void trib_start_log_pop_to(struct trib_offload *o, uint64_t seq);

/** trib_offload_collect_commits - commit the starts whose barrier this rank has
 * left. */
void trib_offload_collect_commits(struct trib_offload *o);

/** trib_offload_plan_close - set the status that the user of an open start receives. */
void trib_offload_plan_close(struct trib_offload_plan *p, trib_status_t status);

/** trib_offload_inner_succeeded - return true if the newest start of an inner plan has
 * succeeded. */
bool trib_offload_inner_succeeded(const struct trib_plan *plan);

/* Inner plans: offload_plan.c ------------------------------------------------------ */

/** trib_offload_plan_refused - copy the error message of `by` to the parent; return
 * st. */
trib_status_t trib_offload_plan_refused(struct trib_offload_plan *p,
                                        const struct trib_comm *by, trib_status_t st);

/**
 * trib_offload_chunk - return the chunk size on agg_comm, in bytes, of a plan of
 * `bytes` bytes; 0: the default.
 *
 * most     bytes of a slot of agg_comm
 */
size_t trib_offload_chunk(const struct trib_codec *codec, size_t bytes, int aggregators,
                          size_t most, bool load_store);

/** trib_offload_plan_make_inner - create the inner plan on agg_comm or on
 * fallback_comm. */
trib_status_t trib_offload_plan_make_inner(struct trib_offload_plan *p,
                                           struct trib_comm *comm,
                                           struct trib_plan **out);

/** trib_offload_plan_make_commit - create the barrier that follows each start of an
 * inner plan. */
trib_status_t trib_offload_plan_make_commit(const struct trib_offload *o,
                                            const struct trib_plan *plan,
                                            struct trib_plan **out);

/** trib_offload_plan_number - pass the start's number to the inner plan, as a seed of
 * its random numbers. */
void trib_offload_plan_number(struct trib_offload_plan *p);

/** trib_offload_plan_start_both - start the inner plan and its barrier; seq is the
 * number of the start. */
trib_status_t trib_offload_plan_start_both(struct trib_offload_plan *p, uint64_t seq);

/**
 * trib_offload_plan_move - move the plan with all state to an inner plan on `to`.
 *
 * errors   as trib_plan_make, with the message in `to`; the plan then does not move
 */
trib_status_t trib_offload_plan_move(struct trib_offload_plan *p, struct trib_comm *to);

/** trib_offload_plan_restart - repeat the newest start on fallback_comm. */
trib_status_t trib_offload_plan_restart(struct trib_offload_plan *p);

/** trib_offload_plan_needs_input - return true if elements of the start are not ready
 * yet. */
bool trib_offload_plan_needs_input(const struct trib_offload_plan *p);

/* Waiting: offload_wait.c ---------------------------------------------------------- */

/** trib_offload_plan_advance - check once whether an open start has ended or agg_comm
 * has failed. */
void trib_offload_plan_advance(struct trib_offload_plan *p);

/** trib_offload_plan_wait - wait outside of the gate until an open start has ended or
 * agg_comm has failed. The caller must have entered the gate exactly once. */
void trib_offload_plan_wait(struct trib_offload_plan *p);

/** trib_offload_finish - wait on fallback_comm for all starts in the log. */
void trib_offload_finish(struct trib_offload *o);

/* Plans with a quorum: offload_partial.c ------------------------------------------- */

/** trib_offload_plan_has_quorum - return true if aggregators may close the plan's
 * chunks without late ranks. */
bool trib_offload_plan_has_quorum(const struct trib_offload_plan *p);

/** trib_offload_quorum_make - allocate memory for a result of a plan with a quorum;
 * TRIB_ERR_NO_MEMORY. */
trib_status_t trib_offload_quorum_make(struct trib_offload_plan *p);
void trib_offload_quorum_free(struct trib_offload_plan *p);

/** trib_offload_quorum_end_all - end pending starts with a quorum whose inner plan is
 * done: their users may have the results. */
void trib_offload_quorum_end_all(struct trib_offload *o);

/** trib_offload_quorum_forget - free the results of freed plans: of starts up to
 * o->committed, or of all starts that have ended. */
void trib_offload_quorum_forget(struct trib_offload *o, bool all);

/** trib_offload_quorum_drop_barriers - free the barriers of freed plans, after
 * commit_comm has stopped. */
void trib_offload_quorum_drop_barriers(struct trib_offload *o);

/** trib_offload_quorum_drop - free all kept results. */
void trib_offload_quorum_drop(struct trib_offload *o);

/** trib_offload_quorum_uncommitted - return true if the plan cannot be restarted or
 * freed yet. */
bool trib_offload_quorum_uncommitted(const struct trib_offload_plan *p);

/** trib_offload_quorum_fence - wait until the plan's last start is committed or
 * agg_comm is lost. */
void trib_offload_quorum_fence(struct trib_offload_plan *p);

/**
 * trib_offload_quorum_spread - after agg_comm has failed: send the results of starts
 * done + 1 to ended, which some ranks have, to all ranks. Collective.
 *
 * by_out   after an error: the communicator that has failed
 */
trib_status_t trib_offload_quorum_spread(struct trib_offload *o, uint64_t done,
                                         uint64_t ended, struct trib_comm **by_out);

/** trib_offload_quorum_start_committed - begin a start whose result another rank has
 * sent; false: there is none. */
bool trib_offload_quorum_start_committed(struct trib_offload_plan *p);

/** trib_offload_quorum_deliver - end a start with its pending_result. All input must be
 * ready. */
void trib_offload_quorum_deliver(struct trib_offload_plan *p);

#endif
