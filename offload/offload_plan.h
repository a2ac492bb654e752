/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An offloaded plan: a plan of the parent whose starts an inner plan runs, on agg_comm
 * or on fallback_comm.
 *
 * Threads: all functions run within the gate (offload_gate.h), without the lock of
 * agg_comm, unless they say otherwise.
 */
#ifndef OFFLOAD_OFFLOAD_PLAN_H
#define OFFLOAD_OFFLOAD_PLAN_H

#include "offload/fallback.h"

/* Elements that trib_plan_ready has named. */
struct trib_ready_range {
    size_t first, count;
};

/* The result of a start with a quorum, kept until all ranks have it. */
struct trib_committed_start {
    struct trib_committed_start *next;
    struct trib_quorum_start *start;
    struct trib_plan
        *commit; /* barrier of a freed plan, which may be under way; or NULL */
};

struct trib_offload_plan {
    struct trib_offload *offload;
    struct trib_plan *inner; /* plan of agg_comm or of fallback_comm */
    struct trib_plan *commit; /* barrier behind each start; NULL on fallback_comm */
    trib_coll_t coll;
    trib_desc_t desc; /* description of the parent's plan, with its own texts */
    struct trib_offload_plan *next; /* in offload->plans */
    struct trib_offload_plan *newer; /* in the start log, behind offload->oldest */
    bool pending; /* in the start log: not known to be done by all ranks */
    bool open; /* started, and the user does not know the end */
    uint64_t committed_upto; /* starts that the newest start of `commit` commits */
    struct trib_committed_start
        *committed; /* with a quorum: room for the newest result */
    struct trib_quorum_start
        *pending_result; /* result that only other ranks have; or NULL */
    bool begun; /* this rank had begun the start of pending_result */
    size_t *absent; /* [ranks] absent elements of the newest start */
    uint64_t seq; /* number of the newest start in the start log */
    uint64_t number; /* number of the newest start in the parent: trib_plan_number */
    bool of_calls; /* shared by the blocking calls without a name */
    uint32_t step_before; /* inner->run.now.step before the newest start: equal if not
                           * begun */
    trib_status_t status; /* of the newest start, once it is not pending */
    const void *send; /* of a sparse plan: a struct trib_pairs_input */
    void *recv;
    const struct trib_plan_sparse *sparse; /* of the parent's plan; NULL: elements */
    struct trib_ready_range *ready; /* [n_ready] elements named in the newest start */
    size_t n_ready, max_ready;
};

/* Recovery: fallback.c ------------------------------------------------------------- */

/** trib_offload_recover - after agg_comm has failed: agree with all ranks, and go on
 * with fallback_comm. Blocks. */
void trib_offload_recover(struct trib_offload *o);

/** trib_offload_lost - true if agg_comm has failed and the ranks have yet to
 * recover. */
bool trib_offload_lost(const struct trib_offload *o);

/**
 * trib_offload_rejoin - before a start without agg_comm: poll, or come to aggregators
 * (rejoin.c).
 *
 * p        plan that is to be started; all ranks call this before the same starts
 */
void trib_offload_rejoin(struct trib_offload *o, const struct trib_offload_plan *p);

/** trib_offload_leave - rank 0: give agg_comm up for a better one, as if it had
 * failed. */
void trib_offload_leave(struct trib_offload *o);

/** trib_offload_give_up - fail the parent, because `by` has failed: a rank is lost. */
void trib_offload_give_up(struct trib_offload *o, const struct trib_comm *by,
                          trib_status_t st);

/* Agreements over control_comm: agreement.c ---------------------------------------- */

/**
 * trib_agreement_start, _wait - begin an agreement, and wait for it: o->agreed has its
 * words.
 *
 * One at a time, and the same ones in the same order on all ranks. trib_agreement_run
 * does both.
 * errors   those of control_comm, which has failed
 */
trib_status_t trib_agreement_start(struct trib_offload *o,
                                   const int64_t say[TRIB_AGREE_WORDS]);
trib_status_t trib_agreement_wait(struct trib_offload *o);
trib_status_t trib_agreement_run(struct trib_offload *o,
                                 const int64_t say[TRIB_AGREE_WORDS]);

/**
 * trib_agreement_look - while this rank waits at the aggregators: fails their
 * communicator if a rank is lost, or if another rank has left them and waits in an
 * agreement.
 *
 * The caller holds the lock of agg_comm.
 */
void trib_agreement_look(struct trib_offload *o);

/** trib_agreement_close - end agreements, before control_comm is freed. */
void trib_agreement_close(struct trib_offload *o);

/* The start log: start_log.c ------------------------------------------------------- */

/** trib_start_log_push - append the start of a plan as the newest one. */
void trib_start_log_push(struct trib_offload_plan *p);

/** trib_start_log_remove - take a plan's start out of the log, if it is there. */
void trib_start_log_remove(struct trib_offload_plan *p);

/** trib_start_log_pop - end the oldest start with this status. */
void trib_start_log_pop(struct trib_offload *o, trib_status_t status);

/** trib_start_log_pop_to - commit the starts up to this number, which all ranks have
 * done. */
void trib_start_log_pop_to(struct trib_offload *o, uint64_t seq);

/** trib_offload_collect_commits - commit the starts whose barrier this rank has
 * left. */
void trib_offload_collect_commits(struct trib_offload *o);

/** trib_offload_plan_close - tell the user of an open start how it ended. */
void trib_offload_plan_close(struct trib_offload_plan *p, trib_status_t status);

/** trib_offload_inner_succeeded - true if the newest start of an inner plan has
 * succeeded. */
bool trib_offload_inner_succeeded(const struct trib_plan *plan);

/* Inner plans: offload_plan.c ------------------------------------------------------ */

/** trib_offload_plan_refused - give the parent the sentence of `by`; returns st. */
trib_status_t trib_offload_plan_refused(struct trib_offload_plan *p,
                                        const struct trib_comm *by, trib_status_t st);

/**
 * trib_offload_chunk - the chunk of a plan of so many bytes on agg_comm, in bytes; 0:
 * the default.
 *
 * most     bytes of a slot there
 */
size_t trib_offload_chunk(const struct trib_codec *codec, size_t bytes, int aggregators,
                          size_t most, bool load_store);

/** trib_offload_plan_make_inner - make the inner plan on agg_comm or on
 * fallback_comm. */
trib_status_t trib_offload_plan_make_inner(struct trib_offload_plan *p,
                                           struct trib_comm *comm,
                                           struct trib_plan **out);

/** trib_offload_plan_make_commit - make the barrier behind each start of an inner
 * plan. */
trib_status_t trib_offload_plan_make_commit(const struct trib_offload *o,
                                            const struct trib_plan *plan,
                                            struct trib_plan **out);

/** trib_offload_plan_number - pass the number of the start to the inner plan, whose
 * random numbers depend on it. */
void trib_offload_plan_number(struct trib_offload_plan *p);

/** trib_offload_plan_start_both - start the inner plan, and its barrier; seq is the
 * start's. */
trib_status_t trib_offload_plan_start_both(struct trib_offload_plan *p, uint64_t seq);

/**
 * trib_offload_plan_move - move to an inner plan on `to`, with all state.
 *
 * errors   those of trib_plan_make, with the sentence in `to`; the plan then stays
 *          where it was
 */
trib_status_t trib_offload_plan_move(struct trib_offload_plan *p, struct trib_comm *to);

/** trib_offload_plan_restart - start the newest start again, on fallback_comm. */
trib_status_t trib_offload_plan_restart(struct trib_offload_plan *p);

/** trib_offload_plan_needs_input - true if the user has yet to name elements of the
 * start. */
bool trib_offload_plan_needs_input(const struct trib_offload_plan *p);

/* Waiting: offload_wait.c ---------------------------------------------------------- */

/** trib_offload_plan_advance - check once whether an open start has ended or agg_comm
 * failed. */
void trib_offload_plan_advance(struct trib_offload_plan *p);

/** trib_offload_plan_wait - wait until an open start has ended or agg_comm has failed,
 * outside of the gate, in which the caller is once. */
void trib_offload_plan_wait(struct trib_offload_plan *p);

/** trib_offload_finish - wait for all starts in the log, on fallback_comm. */
void trib_offload_finish(struct trib_offload *o);

/* Plans with a quorum: offload_partial.c ------------------------------------------- */

/** trib_offload_plan_has_quorum - true if aggregators close the plan's chunks without
 * late ranks. */
bool trib_offload_plan_has_quorum(const struct trib_offload_plan *p);

/** trib_offload_quorum_make - make the room for a result of such a plan;
 * TRIB_ERR_NO_MEMORY. */
trib_status_t trib_offload_quorum_make(struct trib_offload_plan *p);
void trib_offload_quorum_free(struct trib_offload_plan *p);

/** trib_offload_quorum_end_all - end pending starts whose inner plan is done: their
 * users may have the results. */
void trib_offload_quorum_end_all(struct trib_offload *o);

/** trib_offload_quorum_forget - free results of starts up to o->committed; all: of all
 * starts that have ended. */
void trib_offload_quorum_forget(struct trib_offload *o, bool all);

/** trib_offload_quorum_drop_barriers - free barriers of freed plans, after commit_comm
 * has stopped. */
void trib_offload_quorum_drop_barriers(struct trib_offload *o);

/** trib_offload_quorum_drop - free all results. */
void trib_offload_quorum_drop(struct trib_offload *o);

/** trib_offload_quorum_uncommitted - true if the plan may not be started again or freed
 * yet. */
bool trib_offload_quorum_uncommitted(const struct trib_offload_plan *p);

/** trib_offload_quorum_fence - wait until the plan's last start is committed, or
 * agg_comm lost. */
void trib_offload_quorum_fence(struct trib_offload_plan *p);

/**
 * trib_offload_quorum_spread - after agg_comm: give the results of starts done + 1 to
 * ended, which some ranks have, to all ranks. All ranks at once.
 *
 * by_out   communicator that has failed, after an error
 */
trib_status_t trib_offload_quorum_spread(struct trib_offload *o, uint64_t done,
                                         uint64_t ended, struct trib_comm **by_out);

/** trib_offload_quorum_start_committed - begin a start whose result this rank has from
 * others; false: it has none. */
bool trib_offload_quorum_start_committed(struct trib_offload_plan *p);

/** trib_offload_quorum_deliver - end a start by its pending_result; all input is
 * there. */
void trib_offload_quorum_deliver(struct trib_offload_plan *p);

#endif
