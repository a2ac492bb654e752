/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The offload of a communicator: aggregators of tribd sum its all-reduces. These files
 * say what happens when aggregators are lost, and how the ranks come to others.
 *
 * Beside the user's communicator, the parent, there are four: agg_comm of ranks and
 * aggregators (agg_comm.h), fallback_comm of the ranks alone, and two small ones of the
 * ranks. Over control_comm they agree; over commit_comm they commit starts that have a
 * quorum.
 *
 * An offloaded plan has an inner plan on agg_comm, and each of its starts is followed
 * by a barrier of agg_comm: a rank that has left the barrier knows that all ranks have
 * their results. The start is then committed. So when agg_comm fails
 *
 *   - the ranks tell each other over control_comm up to which start each has left the
 *     barrier. All starts up to the largest of these numbers are done, on every rank;
 *   - each later start is undone (pipeline/payload/undo_log.h) and started again on
 *     fallback_comm, in the same order on all ranks: nothing is lost and nothing is
 *     counted twice;
 *   - from then on fallback_comm does what agg_comm did.
 *
 * A rank that is in no call joins the others at its next call. Ranks that wait for each
 * other in any operation of the parent look after agg_comm meanwhile.
 *
 * Without agg_comm the ranks poll now and then, at start numbers on which they have
 * agreed, whether rank 0 knows of aggregators that would take the job. If so they open
 * an agg_comm, and each plan moves to it with its next start (rejoin.c). If more
 * aggregators can be had than an agg_comm has, the ranks leave it as if it had failed,
 * and open another one.
 *
 * With a quorum (pipeline/payload/partial.h) the barrier is an operation of
 * commit_comm, and the plan's next start waits for its end. So it delays no other plan,
 * and a rank may be late by one start of each plan. A user may then have a result that
 * is not committed. This result is not undone, but given to the ranks that lack it:
 * offload_partial.c.
 *
 * None of this uses the parent, whose operations have an order of their own. Calls of
 * several threads, and the parent's progress thread where it looks for the end of a
 * plan, change all of it within a gate: offload_gate.h.
 */
#ifndef OFFLOAD_FALLBACK_H
#define OFFLOAD_FALLBACK_H

#include "offload/agg_comm.h"

struct trib_offload_plan;

/* The numbers that each rank contributes to one agreement. Each rank learns the
 * largest. */
enum trib_agreement_word {
    TRIB_AGREE_COMMITTED, /* start up to which all ranks are done, as far as this rank
                           * knows */
    TRIB_AGREE_STARTED, /* newest start of this rank */
    TRIB_AGREE_LEAVING, /* rank 0: agg_comm did not fail, the ranks leave it for a
                         * better one */
    TRIB_AGREE_REJOIN, /* rank 0: aggregators would take the job */
    TRIB_AGREE_NEXT, /* rank 0: number of starts until the next poll */
    TRIB_AGREE_BUSY, /* some start of this rank waits for its user */
    TRIB_AGREE_LOST, /* this rank's agg_comm has failed */
    TRIB_AGREE_ENDED, /* newest start with a quorum whose result a user may have */
    TRIB_AGREE_HAS, /* number of ranks less the rank, if this rank has that result */
    TRIB_AGREE_WORDS,
};

/* Callbacks that provide aggregators. Threads call them within the gate, one at a
 * time. */
struct trib_agg_provider_ops {
    /* Rank 0, now and then while there is an agg_comm: check the aggregators. NULL:
     * nothing. */
    void (*look)(void *arg);
    /* Rank 0: true if a better agg_comm than the present one could be had. Must be
     * cheap. */
    bool (*found)(void *arg);
    /*
     * All ranks at once: open an agg_comm, with the same status on all. NULL: the ranks
     * never come back to aggregators. text receives who sums, or why nobody does. The
     * callback may use control_comm.
     */
    trib_status_t (*open)(void *arg, struct trib_comm **agg_comm_out, char *text,
                          size_t bytes);
    /* After agg_comm is gone, or everything has failed. NULL: nothing. */
    void (*lost)(void *arg);
    void (*free)(void *arg); /* at the end; or NULL */
    void *arg;
};

struct trib_offload {
    struct trib_comm *parent;
    pthread_mutex_t gate; /* recursive: offload_gate.h */
    _Atomic int waits; /* threads that wait outside of the gate */
    struct trib_comm *agg_comm; /* NULL: fallback_comm runs the plans */
    struct trib_comm *fallback_comm;
    struct trib_comm *control_comm;
    struct trib_comm *commit_comm; /* barriers behind starts with a quorum; or NULL */
    struct trib_plan *agreement; /* all-reduce of control_comm; NULL: not needed yet */
    int64_t agreed[TRIB_AGREE_WORDS]; /* words of the newest agreement */
    struct trib_offload_plan *plans; /* all offloaded plans */
    struct trib_offload_plan *oldest, *newest; /* the start log: start_log.c */
    uint64_t started; /* number of starts */
    uint64_t committed; /* all ranks have done the starts up to this number */
    uint64_t ended;     /* newest start with a quorum whose result the user may have */
    uint64_t offloaded; /* starts that aggregators have done, for trib_stats */
    struct trib_committed_start
        *freed; /* uncommitted results of plans that are freed */
    struct trib_committed_start
        *ahead; /* results of starts that only other ranks have begun */
    uint64_t next_poll_seq; /* before this start the ranks poll for aggregators; 0:
                             * never */
    uint64_t polled_ns; /* rank 0: time of the last poll */
    uint64_t poll_every; /* rank 0: starts between two polls */
    bool polling; /* the poll of next_poll_seq is under way */
    bool recovering;
    bool leaving; /* rank 0 has given agg_comm up for a better one */
    trib_status_t
        broken; /* fallback_comm or control_comm has failed: so has the parent */
    struct trib_agg_provider_ops provider;
};

/** trib_offload_hooks - the parent's table while an offload is attached:
 * offload_calls.c. */
extern const struct trib_comm_hooks trib_offload_hooks;

/**
 * trib_offload_attach - let aggregators sum comm's all-reduces; at first fallback_comm
 * does.
 *
 * All ranks at once. The caller then sets provider and agg_comm, which comm owns from
 * then on.
 * errors   those of trib_split, the same on all ranks
 */
trib_status_t trib_offload_attach(struct trib_comm *comm);

/**
 * trib_offload_join - for trib_init: join the aggregators of TRIB_SERVICE, if it is
 * set.
 *
 * If none can be had this is no error: rank 0 warns, and the ranks sum by themselves
 * until there are some.
 */
trib_status_t trib_offload_join(struct trib_comm *comm);

/** trib_offload_detach - leave all four communicators, before the parent is left.
 * Errors as trib_free_comm. */
trib_status_t trib_offload_detach(struct trib_comm *comm);

/** trib_offload_continues - as continues of struct trib_comm_hooks. */
void trib_offload_continues(struct trib_comm *comm, const bool *lost);

/** trib_offload_drop - free them after the communicator has failed, and tell no
 * peer. */
void trib_offload_drop(struct trib_comm *comm);

/** trib_offload_forget_in_child - free a forked child's copy. */
void trib_offload_forget_in_child(struct trib_comm *comm);

/** trib_offload_poll - while ranks wait for each other in the parent: drive agg_comm,
 * and recover with the ranks whose agg_comm has failed. */
void trib_offload_poll(struct trib_comm *comm);

/**
 * trib_offload_register - register memory of the parent in agg_comm and fallback_comm
 * as well.
 *
 * If one of them cannot register it, its vectors go through slots.
 */
void trib_offload_register(struct trib_comm *comm, void *ptr, size_t bytes);

/** trib_offload_register_all - register all memory of the parent in a new agg_comm. */
void trib_offload_register_all(struct trib_offload *o);

/** trib_offload_deregister - TRIB_ERR_BUSY while a start is under way. */
trib_status_t trib_offload_deregister(struct trib_comm *comm, void *ptr);

/** trib_offload_stats - add the counters of agg_comm and fallback_comm. */
void trib_offload_stats(const struct trib_comm *comm, trib_stats_t *stats);

/** trib_offload_any_quorum - true if some plan lets aggregators close its chunks
 * without late ranks. */
bool trib_offload_any_quorum(const struct trib_offload *o);

#endif
