/* SPDX-License-Identifier: BSD-3-Clause */
/* A plan that is served: between offload/fallback.c and offload/offload_plan.c. */
#ifndef OFFLOAD_OFFLOAD_PLAN_H
#define OFFLOAD_OFFLOAD_PLAN_H

#include "offload/fallback.h"

struct trib_ready_range {
    size_t first, count;
};

/* A start that is done, as all ranks know it. */
struct trib_committed_start {
    struct trib_committed_start *next;
    struct trib_quorum_start *start;
    struct trib_plan *confirm; /* of a plan that is freed: it may be under way; or
                                * NULL */
};

struct trib_offload_plan {
    struct trib_offload *offload;
    struct trib_plan *now;     /* of the channel, or of the spare */
    struct trib_plan *confirm; /* the barrier behind each start; NULL: of the spare */
    trib_coll_t coll;
    trib_desc_t desc;          /* its texts are copies */
    struct trib_offload_plan *next; /* in service->first */
    struct trib_offload_plan *newer; /* behind service->oldest */
    bool pending;              /* in that list: not known to be done by all ranks */
    bool open;                 /* started, and the user does not know its end */
    uint64_t covers;           /* the newest start of confirm is behind so many
                                * starts */
    struct trib_committed_start *known; /* with a quorum: room for the newest start, or
                                          * NULL */
    struct trib_quorum_start *due; /* others have ended the newest start, this rank not;
                                    * or NULL */
    bool begun;                /* this rank had begun it */
    size_t *absent;            /* [ranks] elements of the newest start; NULL: 0 */
    uint64_t ordinal;          /* of the newest start */
    uint64_t number;           /* of it in the home: trib_plan_number */
    bool of_calls;             /* the blocking calls without a name share the plan */
    uint32_t step_before;      /* now->run.step then: did the start begin? */
    trib_status_t status;      /* of the newest start that is not pending */
    const void *send;
    void *recv;
    struct trib_ready_range *fed; /* parts that trib_plan_ready has named */
    size_t n_fed, room_fed;
};

/** trib_offload_recover - the channel has failed: all ranks meet here. Blocks. */
void trib_offload_recover(struct trib_offload *v);
bool trib_offload_lost(const struct trib_offload *v);

/**
 * trib_offload_rejoin - before each start, while there is no channel: ask, or go to
 * services.
 *
 * s        the plan that is to be started; all ranks come here with the same starts
 */
void trib_offload_rejoin(struct trib_offload *v, const struct trib_offload_plan *s);

/** trib_offload_leave - rank 0: as if the channel had failed, for a better one. */
void trib_offload_leave(struct trib_offload *v);

/** trib_offload_give_up - by has failed: a rank is lost, and with it the
 * communicator. */
void trib_offload_give_up(struct trib_offload *v, const struct trib_comm *by,
                          trib_status_t st);

/**
 * trib_agreement_start, _hear - an agreement, and its end: what all say of it is in
 * v->said.
 *
 * One at a time, the same ones in the same order on all ranks. trib_agreement_run is
 * both.
 * errors   the control_comm has failed
 */
trib_status_t trib_agreement_start(struct trib_offload *v,
                                   const int64_t say[TRIB_AGREE_WORDS]);
trib_status_t trib_agreement_wait(struct trib_offload *v);
trib_status_t trib_agreement_run(struct trib_offload *v,
                                 const int64_t say[TRIB_AGREE_WORDS]);

/**
 * trib_agreement_look - while this rank waits at the aggregators: fails their
 * communicator if a rank is lost, or if another rank has left them and waits in an
 * agreement.
 *
 * The caller holds the lock of the aggregators' communicator.
 */
void trib_agreement_look(struct trib_offload *v);

/** trib_agreement_close - before the control_comm is freed. */
void trib_agreement_close(struct trib_offload *v);

/** trib_offload_collect_commits - starts whose barrier this rank has left; the rest
 * stays in the list. */
void trib_offload_collect_commits(struct trib_offload *v);

/** trib_start_log_remove - out of the list of pending starts. */
void trib_start_log_remove(struct trib_offload_plan *s);

/** trib_offload_inner_succeeded - has the newest start of a plan of channel or spare
 * succeeded? */
bool trib_offload_inner_succeeded(const struct trib_plan *plan);

/** trib_start_log_push - a start, as the newest one under way. */
void trib_start_log_push(struct trib_offload_plan *s);

/** trib_start_log_pop_to - all ranks have done the starts up to this number. */
void trib_start_log_pop_to(struct trib_offload *v, uint64_t ordinal);

/** trib_offload_plan_refused - the home gets the sentence of `by`; returns st. */
trib_status_t trib_offload_plan_refused(struct trib_offload_plan *s,
                                        const struct trib_comm *by, trib_status_t st);

/** trib_offload_plan_make_inner - the plan that does it on the channel or on the
 * spare. */
trib_status_t trib_offload_plan_make_inner(struct trib_offload_plan *s,
                                           struct trib_comm *comm,
                                           struct trib_plan **out);

/** trib_offload_plan_make_commit - the barrier behind each start of a plan of the
 * channel. */
trib_status_t trib_offload_plan_make_commit(const struct trib_offload *v,
                                            const struct trib_plan *plan,
                                            struct trib_plan **out);

/** trib_offload_plan_number - by which number of the home its next start draws its
 * noise. */
void trib_offload_plan_number(struct trib_offload_plan *s);

/** trib_offload_plan_start_both - the plan, and the barrier behind it. ordinal: of this
 * start. */
trib_status_t trib_offload_plan_start_both(struct trib_offload_plan *s,
                                           uint64_t ordinal);

/** trib_offload_plan_advance - look once at an open start: is it done, or has the
 * channel failed? */
void trib_offload_plan_advance(struct trib_offload_plan *s);

/** trib_offload_plan_wait - drive until an open start is done, or the channel has
 * failed. */
void trib_offload_plan_wait(struct trib_offload_plan *s);

/** trib_offload_plan_close - tell the user of an open start how it ended. */
void trib_offload_plan_close(struct trib_offload_plan *s, trib_status_t status);

/** trib_start_log_pop - the oldest pending start has ended. */
void trib_start_log_pop(struct trib_offload *v, trib_status_t status);

/**
 * trib_offload_plan_move - to a plan of the spare or of the channel, with all that it
 * keeps.
 *
 * errors   as trib_plan_make, the sentence in `to`; it is where it was
 */
trib_status_t trib_offload_plan_move(struct trib_offload_plan *s, struct trib_comm *to);

/** trib_offload_plan_restart - start the newest start again, on the spare. */
trib_status_t trib_offload_plan_restart(struct trib_offload_plan *s);

/** trib_offload_plan_needs_input - can it not end before the user names more of its
 * elements? */
bool trib_offload_plan_needs_input(const struct trib_offload_plan *s);

/* With a quorum: offload_partial.c ------------------------------------------------- */

/** trib_offload_plan_has_quorum - does the channel close the plan's chunks without the
 * late ones? */
bool trib_offload_plan_has_quorum(const struct trib_offload_plan *s);

/** trib_offload_quorum_make - what such a plan of the channel keeps;
 * TRIB_ERR_NO_MEMORY. */
trib_status_t trib_offload_quorum_make(struct trib_offload_plan *s);
void trib_offload_quorum_free(struct trib_offload_plan *s);

/** trib_offload_quorum_end_all - of pending starts whose own operation is done the user
 * may have the result. */
void trib_offload_quorum_end_all(struct trib_offload *v);

/** trib_offload_quorum_forget - results of starts up to v->confirmed; all: of all that
 * are ended. */
void trib_offload_quorum_forget(struct trib_offload *v, bool all);

/** trib_offload_quorum_drop_barriers - of plans that are freed; their communicator has
 * stopped. */
void trib_offload_quorum_drop_barriers(struct trib_offload *v);

/** trib_offload_quorum_drop - all that is known. */
void trib_offload_quorum_drop(struct trib_offload *v);

/** trib_offload_quorum_uncommitted - may the plan not be started again, or its memory
 * freed? */
bool trib_offload_quorum_uncommitted(const struct trib_offload_plan *s);

/** trib_offload_quorum_fence - see that the plan's last start is confirmed, or the
 * channel lost. */
void trib_offload_quorum_fence(struct trib_offload_plan *s);

/**
 * trib_offload_quorum_spread - all ranks, after the channel: starts done + 1 to ended,
 * which some have ended.
 *
 * by_out   whose failure an error is
 */
trib_status_t trib_offload_quorum_spread(struct trib_offload *v, uint64_t done,
                                         uint64_t ended, struct trib_comm **by_out);

/** trib_offload_quorum_start_committed - a start that the others have ended; false: it
 * is another one. */
bool trib_offload_quorum_start_committed(struct trib_offload_plan *s);

/** trib_offload_quorum_deliver - end s->due, of which all is fed. */
void trib_offload_quorum_deliver(struct trib_offload_plan *s);

/** trib_offload_finish - wait for all that is under way on the spare. */
void trib_offload_finish(struct trib_offload *v);

#endif
