/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The offload of a communicator: aggregators of tribd sum its all-reduces. This header
 * explains how the ranks recover when aggregators are lost, and how they rejoin others.
 *
 * The user's communicator, the parent, gets four more:
 *
 *     agg_comm       ranks and aggregators (agg_comm.h)
 *     fallback_comm  the ranks; sums while there is no agg_comm
 *     control_comm   the ranks, with small slots: agreements
 *     commit_comm    the ranks, with small slots: barriers of starts with a quorum
 *
 * Commit. An offloaded plan has an inner plan on agg_comm, and each of its starts is
 * followed by a barrier on agg_comm. When a rank leaves the barrier, all ranks have
 * their results: the start is committed.
 *
 * Recovery. When agg_comm fails:
 *
 *   - The ranks agree over control_comm on the newest start whose barrier any rank
 *     has left. That start and all earlier ones are done on every rank.
 *   - Each later start is undone (pipeline/payload/undo_log.h) and restarted on
 *     fallback_comm, in the same order on all ranks. No contribution is lost or
 *     counted twice.
 *   - From then on fallback_comm runs the plans.
 *
 * A rank outside of any call joins the recovery at its next call. Ranks that wait for
 * each other in an operation of the parent also poll agg_comm.
 *
 * Rejoining. Without agg_comm, rank 0 searches for aggregators that would admit the
 * job. From time to time, at agreed start numbers, the ranks poll whether it has found
 * some. If so, they open an agg_comm, and each plan moves to it with its next start
 * (rejoin.c). If more aggregators become available than agg_comm has, the ranks abandon
 * it as if it had failed, and open another one.
 *
 * Quorum (pipeline/payload/partial.h). The barrier runs on commit_comm, and the plan's
 * next start waits for its end. It therefore delays no other plan, and a rank may be
 * late by one start of each plan. A user may get a result before it is committed. Such
 * a result is not undone: the ranks that lack it receive a copy (offload_partial.c).
 *
 * None of this uses the parent, whose operations have their own order. Calls of several
 * threads, and the parent's progress thread when it checks whether a plan has ended,
 * change this state only within a gate: offload_gate.h.
 */
#ifndef AGG_CLIENT_FALLBACK_H
#define AGG_CLIENT_FALLBACK_H

#include "agg/client/agg_comm.h"

struct trib_offload_plan;

/* The numbers that each rank contributes to an agreement. All ranks receive the maximum
 * of each. */
enum trib_agreement_word {
    TRIB_AGREE_COMMITTED, /* newest start known to this rank to be done on all */
    TRIB_AGREE_STARTED, /* newest start of this rank */
    TRIB_AGREE_LEAVING, /* rank 0: agg_comm is abandoned for a better one */
    TRIB_AGREE_REJOIN, /* rank 0: aggregators would admit the job */
    TRIB_AGREE_NEXT, /* rank 0: number of starts until the next poll */
    TRIB_AGREE_BUSY, /* a start of this rank waits for input from its user */
    TRIB_AGREE_LOST, /* this rank's agg_comm has failed */
    TRIB_AGREE_ENDED, /* newest start with a quorum whose result a user may have */
    TRIB_AGREE_HAS, /* if this rank has that result: ranks - rank */
    TRIB_AGREE_WORDS,
};

/* Callbacks that provide aggregators. They are called within the gate, by one thread at
 * a time. */
struct trib_agg_provider_ops {
    /* Rank 0, from time to time while agg_comm exists: check the aggregators. NULL:
     * nothing. */
    void (*check)(void *arg);
    /* Rank 0: return true if a better agg_comm is available. Must be cheap. */
    bool (*found)(void *arg);
    /* Open an agg_comm. Collective over the ranks, with the same status on all. `text`
     * receives which aggregators sum, or why none do. May use control_comm. NULL: the
     * ranks never rejoin aggregators. */
    trib_status_t (*open)(void *arg, struct trib_comm **agg_comm_out, char *text,
                          size_t bytes);
    /* After agg_comm was freed, or the parent has failed. NULL: nothing. */
    void (*lost)(void *arg);
    void (*free)(void *arg); /* at the end; or NULL */
    void *arg;
};

struct trib_offload {
    struct trib_comm *parent;
    pthread_mutex_t gate; /* recursive: offload_gate.h */
    _Atomic int waits; /* threads in trib_offload_wait_outside */
    struct trib_comm *agg_comm; /* NULL: fallback_comm runs the plans */
    struct trib_comm *fallback_comm;
    struct trib_comm *control_comm;
    struct trib_comm *commit_comm; /* barriers of starts with a quorum; or NULL */
    struct trib_plan *agreement; /* all-reduce on control_comm; NULL: not created yet */
    int64_t agreed[TRIB_AGREE_WORDS]; /* words of the newest agreement */
    struct trib_offload_plan *plans; /* all offloaded plans */
    struct trib_offload_plan *oldest, *newest; /* the start log: start_log.c */
    uint64_t started; /* number of starts */
    uint64_t committed; /* all ranks have done the starts up to this number */
    uint64_t ended; /* newest start with a quorum whose result the user may have */
    uint64_t offloaded; /* starts summed by aggregators, for trib_stats */
    struct trib_committed_start *freed; /* uncommitted results of freed plans */
    struct trib_committed_start *ahead; /* results of starts not yet begun here */
    uint64_t next_poll_seq; /* poll for aggregators before this start; 0: never */
    uint64_t polled_ns; /* rank 0: time of the last poll */
    uint64_t poll_every; /* rank 0: starts between two polls */
    bool polling; /* the poll before next_poll_seq is in flight */
    bool recovering;
    bool leaving; /* rank 0: agg_comm is abandoned for a better one */
    trib_status_t broken; /* error of fallback_comm or control_comm, and parent */
    struct trib_agg_provider_ops provider;
};

/** trib_offload_hooks - the parent's hooks while an offload is attached:
 * offload_calls.c. */
extern const struct trib_comm_hooks trib_offload_hooks;

/**
 * trib_offload_attach - attach an offload to comm, initially without agg_comm.
 * Collective.
 *
 * The caller then sets provider and agg_comm, which comm owns from then on.
 * errors   as trib_split, the same on all ranks
 */
trib_status_t trib_offload_attach(struct trib_comm *comm);

/**
 * trib_offload_join - for trib_init: join the aggregators of TRIB_SERVICE, if it is
 * set.
 *
 * It is no error if none is available: rank 0 warns, and the ranks sum by themselves
 * until some are.
 */
trib_status_t trib_offload_join(struct trib_comm *comm);

/** trib_offload_detach - disconnect from all four communicators, before the parent
 * disconnects. Errors as trib_free_comm. */
trib_status_t trib_offload_detach(struct trib_comm *comm);

/** trib_offload_continues - see `continues` in struct trib_comm_hooks. */
void trib_offload_continues(struct trib_comm *comm, const bool *lost);

/** trib_offload_drop - free the offload of a failed communicator without notifying
 * peers. */
void trib_offload_drop(struct trib_comm *comm);

/** trib_offload_free_in_child - free a forked child's copy. */
void trib_offload_free_in_child(struct trib_comm *comm);

/** trib_offload_poll - while ranks wait for each other in the parent: drive agg_comm,
 * and recover if agg_comm has failed. */
void trib_offload_poll(struct trib_comm *comm);

/**
 * trib_offload_register - register the parent's memory in agg_comm and fallback_comm
 * too.
 *
 * A communicator that cannot register it sends its vectors through slots.
 */
void trib_offload_register(struct trib_comm *comm, void *ptr, size_t bytes);

/** trib_offload_register_all - register all memory of the parent in a new agg_comm. */
void trib_offload_register_all(struct trib_offload *o);

/** trib_offload_deregister - deregister memory; TRIB_ERR_BUSY while a start is in
 * flight. */
trib_status_t trib_offload_deregister(struct trib_comm *comm, void *ptr);

/** trib_offload_stats - add the counters of agg_comm and fallback_comm. */
void trib_offload_stats(const struct trib_comm *comm, trib_stats_t *stats);

/** trib_offload_any_quorum - return true if any plan has a quorum. */
bool trib_offload_any_quorum(const struct trib_offload *o);

#endif
