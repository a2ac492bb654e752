/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables through which comm/ reaches what is built on it.
 *
 * The public calls check their arguments once and then call through the plan's table. A
 * plan that this communicator's own engine runs has trib_plan_own_ops (plan_own.c);
 * offload/ gives a plan that aggregators run a table of its own. So comm/ names no file
 * of offload/.
 *
 * Threads: as the public calls of the same names (tributary/coll.h).
 */
#ifndef COMM_PLAN_OPS_H
#define COMM_PLAN_OPS_H

#include <stdbool.h>
#include <stddef.h>

#include <tributary/coll.h>

struct trib_comm;
struct trib_plan;

/** Each public call of a plan has a row here, and has checked buffers, range and
 * process. */
struct trib_plan_ops {
    /** Start and wait, for the blocking calls. */
    trib_status_t (*run)(struct trib_plan *plan, const void *send, void *recv);
    trib_status_t (*start)(struct trib_plan *plan, const void *send, void *recv);
    trib_status_t (*ready)(struct trib_plan *plan, size_t first, size_t count);
    trib_status_t (*test)(struct trib_plan *plan);
    trib_status_t (*wait)(struct trib_plan *plan);
    /** True if a start is under way: the plan may not be freed. */
    bool (*busy)(const struct trib_plan *plan);
    /** The buffer of the start under way from which trib_plan_ready names parts; NULL:
     * none. */
    const void *(*input)(const struct trib_plan *plan);
    /** The plan whose engine computes: for trib_plan_explain, and for its lock. */
    struct trib_plan *(*computing)(struct trib_plan *plan);
    trib_status_t (*state_save)(struct trib_plan *plan, void *state, size_t bytes,
                                size_t *bytes_out);
    trib_status_t (*state_load)(struct trib_plan *plan, const void *state,
                                size_t bytes);
    trib_status_t (*sent)(struct trib_plan *plan, const unsigned char **mask_out,
                          size_t *sent_out);
    /** elements_out is all zero. */
    void (*absent)(const struct trib_plan *plan, size_t *elements_out);
    /** Fail every communicator that has a part of the plan's start. NULL: there is only
     * one. */
    void (*fail)(struct trib_plan *plan, trib_status_t status, const char *text);
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
    /** The ranks may be waiting elsewhere for this one: look after it. */
    void (*poll)(struct trib_comm *comm);
    /** The communicator's transport reaches this memory now. */
    void (*registered)(struct trib_comm *comm, void *ptr, size_t bytes);
    /** It will not any longer. TRIB_ERR_BUSY while a start is under way. */
    trib_status_t (*deregister)(struct trib_comm *comm, void *ptr);
    /** Add what the other object has counted. */
    void (*stats)(const struct trib_comm *comm, trib_stats_t *stats);
    /** All ranks leave the other object; before the communicator is left. */
    trib_status_t (*detach)(struct trib_comm *comm);
    /** Free it without a word to others: the communicator has failed. */
    void (*drop)(struct trib_comm *comm);
    /** Free a forked child's copy of it. */
    void (*forget_in_child)(struct trib_comm *comm);
};

/* With aggregators a chunk of code words that add may have so many slots' bytes of
 * elements, if its word fits into one slot. */
#define TRIB_AGG_CHUNKS_PER_WORD 4

/** A communicator with aggregators behind its ranks knows this of them. */
struct trib_aggregators {
    int n; /* they have the ranks' numbers and those behind them */
    const struct trib_agg_tree *tree; /* NULL: each rank sends to all of them */
    /** Number a plan for its frames, and have rank 0 tell the aggregators of it. */
    trib_status_t (*announce)(struct trib_plan *plan, const trib_desc_t *desc,
                              bool leaving, uint32_t *number_out);
    /** Give its number back, and have rank 0 tell the aggregators. */
    void (*free_plan)(struct trib_plan *plan);
    /** With the communicator. */
    void (*free)(struct trib_aggregators *a);
};

#endif
