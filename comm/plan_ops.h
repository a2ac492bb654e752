/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables through which comm/ reaches what is built on it.
 *
 * The public calls check their arguments once and then call through the plan's table. A
 * plan that its communicator's own engine runs has trib_plan_own_ops (plan_own.c);
 * offload/ gives plans that aggregators run a table of its own. So comm/ names no file
 * of offload/.
 *
 * Threads: those of the public calls with the same names (tributary/coll.h).
 */
#ifndef COMM_PLAN_OPS_H
#define COMM_PLAN_OPS_H

#include <stdbool.h>
#include <stddef.h>

#include <tributary/coll.h>

struct trib_comm;
struct trib_plan;

/** The public calls of a plan. They have checked buffers, range and process. */
struct trib_plan_ops {
    /** Start the plan and wait for it, for the blocking calls. */
    trib_status_t (*run)(struct trib_plan *plan, const void *send, void *recv);
    trib_status_t (*start)(struct trib_plan *plan, const void *send, void *recv);
    trib_status_t (*ready)(struct trib_plan *plan, size_t first, size_t count);
    trib_status_t (*test)(struct trib_plan *plan);
    /** The same, for the thread that tells of the end of starts: TRIB_INPROGRESS also
     * where another thread is in a call. NULL: run.now says how a start stands. */
    trib_status_t (*look)(struct trib_plan *plan);
    trib_status_t (*wait)(struct trib_plan *plan);
    /** True if a start is under way: the plan may not be freed. */
    bool (*busy)(const struct trib_plan *plan);
    /** Input of the running start, of which trib_plan_ready names parts; NULL: none
     * runs. */
    const void *(*input)(const struct trib_plan *plan);
    /** The plan whose engine computes, for trib_plan_explain and for its lock. */
    struct trib_plan *(*computing)(struct trib_plan *plan);
    /** Keep the plan that computes as it is, and then no longer. NULL: it always
     * is. */
    void (*hold)(const struct trib_plan *plan);
    void (*let_go)(const struct trib_plan *plan);
    trib_status_t (*state_save)(struct trib_plan *plan, void *state, size_t bytes,
                                size_t *bytes_out);
    trib_status_t (*state_load)(struct trib_plan *plan, const void *state,
                                size_t bytes);
    trib_status_t (*sent)(struct trib_plan *plan, const unsigned char **mask_out,
                          size_t *sent_out);
    /** Add the absent elements of each rank; elements_out is all zero at first. */
    void (*absent)(const struct trib_plan *plan, size_t *elements_out);
    /** Fail all communicators that take part in the start. NULL: plan->comm is the only
     * one. */
    void (*fail)(struct trib_plan *plan, trib_status_t status, const char *text);
    /** trib_plan_explain. NULL: as of a collective. */
    trib_status_t (*explain)(const struct trib_plan *plan, char *text, size_t bytes);
    /** trib_plan_awaits, of a start that is under way. NULL: as of a collective. */
    void (*awaits)(const struct trib_plan *plan, char *text, size_t bytes);
    /** Free what the owner of this table keeps of the plan. NULL: nothing. */
    void (*destroy)(struct trib_plan *plan);
};

extern const struct trib_plan_ops trib_plan_own_ops;

/**
 * Another object that runs some of a communicator's operations fills this table. The
 * thread of a public call calls each row, without the communicator's lock.
 */
struct trib_comm_hooks {
    /** True if a plan of this description is to be made by plan_make below. */
    bool (*takes)(const struct trib_comm *comm, trib_coll_t coll,
                  const trib_desc_t *desc, bool leaving);
    /** Make such a plan, and set its table; the sentence of an error is in
     * plan->comm. */
    trib_status_t (*plan_make)(struct trib_plan *plan, trib_coll_t coll,
                               const trib_desc_t *desc);
    /** Look after ranks that wait for this one on another communicator. */
    void (*poll)(struct trib_comm *comm);
    /** The communicator's transport reaches this memory now. */
    void (*registered)(struct trib_comm *comm, void *ptr, size_t bytes);
    /** The transport stops reaching it. TRIB_ERR_BUSY while a start is under way. */
    trib_status_t (*deregister)(struct trib_comm *comm, void *ptr);
    /** Add the counters of the other object. */
    void (*stats)(const struct trib_comm *comm, trib_stats_t *stats);
    /** The communicator is over: fail what the other object has under way. */
    void (*fail)(struct trib_comm *comm, trib_status_t status, const char *text);
    /** The communicator's job continues without the ranks of lost[size]: tell those
     * that the other object has lost, too. */
    void (*continues)(struct trib_comm *comm, const bool *lost);
    /** All ranks leave the other object, before they leave the communicator. */
    trib_status_t (*detach)(struct trib_comm *comm);
    /** Free it after the communicator has failed, and tell no peer. */
    void (*drop)(struct trib_comm *comm);
    /** Free a forked child's copy of it. */
    void (*forget_in_child)(struct trib_comm *comm);
};

/* With aggregators, a chunk of words that add may have this many slots' bytes of
 * elements, if its word fits into one slot. */
#define TRIB_AGG_CHUNKS_PER_WORD 4

/** The aggregators behind the ranks of a communicator. */
struct trib_aggregators {
    int n; /* number of aggregators; their ranks follow those of the ranks */
    const struct trib_agg_tree *tree; /* NULL: each rank sends to all of them */
    /** Number a plan for its frames; rank 0 tells the aggregators of the plan. */
    trib_status_t (*announce)(struct trib_plan *plan, const trib_desc_t *desc,
                              bool leaving, uint32_t *number_out);
    /** Give the number back; rank 0 tells the aggregators. */
    void (*free_plan)(struct trib_plan *plan);
    /** Free it, with the communicator. */
    void (*free)(struct trib_aggregators *a);
};

#endif
