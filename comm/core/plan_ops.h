/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables through which comm/ calls the layers built on it.
 *
 * The public calls check their arguments once, then dispatch through the plan's table.
 * Plans run by their communicator's own engine use trib_plan_own_ops (plan_own.c);
 * plans run by aggregators use a table of agg/client/. So comm/ names no file of
 * agg/client/.
 *
 * Threads: as the public calls of the same names (tributary/coll.h).
 */
#ifndef COMM_CORE_PLAN_OPS_H
#define COMM_CORE_PLAN_OPS_H

#include <stdbool.h>
#include <stddef.h>

#include <tributary/coll.h>

struct trib_comm;
struct trib_plan;

/** The public calls of a plan. Buffers, range and process are already checked. */
struct trib_plan_ops {
    /** Start the plan and wait for it, for the blocking calls. */
    trib_status_t (*run)(struct trib_plan *plan, const void *send, void *recv);
    trib_status_t (*start)(struct trib_plan *plan, const void *send, void *recv);
    trib_status_t (*ready)(struct trib_plan *plan, size_t first, size_t count);
    trib_status_t (*test)(struct trib_plan *plan);
    /** As `test`, for the thread that runs completion callbacks. Also returns
     * TRIB_INPROGRESS while another thread is in a call. NULL: use the status in
     * `run`. */
    trib_status_t (*poll)(struct trib_plan *plan);
    trib_status_t (*wait)(struct trib_plan *plan);
    /** True while a start is in flight, when the plan cannot be freed. */
    bool (*busy)(const struct trib_plan *plan);
    /** Input of the running start that is fed by trib_plan_ready; NULL: not running. */
    const void *(*input)(const struct trib_plan *plan);
    /** The plan whose engine computes, for trib_plan_explain and for its lock. */
    struct trib_plan *(*computing)(struct trib_plan *plan);
    /** Pin and unpin the computing plan. NULL: it never changes. */
    void (*hold)(const struct trib_plan *plan);
    void (*let_go)(const struct trib_plan *plan);
    /** Save and load the plan's state. NULL: the implementation of comm/state/. */
    trib_status_t (*state_save)(struct trib_plan *plan, void *state, size_t bytes,
                                size_t *bytes_out);
    trib_status_t (*state_load)(struct trib_plan *plan, const void *state,
                                size_t bytes);
    trib_status_t (*sent)(struct trib_plan *plan, const unsigned char **mask_out,
                          size_t *sent_out);
    /** Add each rank's number of absent elements; elements_out is initially zero. */
    void (*absent)(const struct trib_plan *plan, size_t *elements_out);
    /** Fail all communicators involved in the start. NULL: only plan->comm is. */
    void (*fail)(struct trib_plan *plan, trib_status_t status, const char *text);
    /** trib_plan_explain. NULL: the implementation for collectives. */
    trib_status_t (*explain)(const struct trib_plan *plan, char *text, size_t bytes);
    /** trib_plan_awaits, for a start in flight. NULL: the implementation for
     * collectives. */
    void (*awaits)(const struct trib_plan *plan, char *text, size_t bytes);
    /** Free the plan's data that the owner of this table keeps. NULL: none. */
    void (*destroy)(struct trib_plan *plan);
};

extern const struct trib_plan_ops trib_plan_own_ops;

/**
 * Table filled by an object that runs some of a communicator's operations. Rows are
 * called by the thread of a public call, without the communicator's lock.
 */
struct trib_comm_hooks {
    /** True if plan_make below must create a plan of this description. */
    bool (*takes)(const struct trib_comm *comm, trib_coll_t coll,
                  const trib_desc_t *desc, bool leaving);
    /** Create such a plan and set its table; on error the message is in plan->comm. */
    trib_status_t (*plan_make)(struct trib_plan *plan, trib_coll_t coll,
                               const trib_desc_t *desc);
    /** Make progress for ranks waiting on another communicator. */
    void (*poll)(struct trib_comm *comm);
    /** The communicator's transport has registered this memory. */
    void (*registered)(struct trib_comm *comm, void *ptr, size_t bytes);
    /** The transport is about to deregister it. TRIB_ERR_BUSY while a start runs. */
    trib_status_t (*deregister)(struct trib_comm *comm, void *ptr);
    /** Add the counters of the other object. */
    void (*stats)(const struct trib_comm *comm, trib_stats_t *stats);
    /** The communicator has failed: fail everything in flight in the other object. */
    void (*fail)(struct trib_comm *comm, trib_status_t status, const char *text);
    /** The communicator's job continues without the ranks of lost[size]: notify those
     * that the other object has lost, too. */
    void (*continues)(struct trib_comm *comm, const bool *lost);
    /** Disconnect all ranks from the other object, before they leave the
     * communicator. */
    trib_status_t (*detach)(struct trib_comm *comm);
    /** Free the object after the communicator has failed, without notifying peers. */
    void (*drop)(struct trib_comm *comm);
    /** Free a forked child's copy of the object. */
    void (*forget_in_child)(struct trib_comm *comm);
};

/* With aggregators, a chunk whose encodings add may have this many slots' worth of
 * elements, if its encoding fits one slot. */
#define TRIB_AGG_CHUNKS_PER_WORD 4

/** The aggregators serving a communicator's ranks. */
struct trib_aggregators {
    int n; /* number of aggregators; their ranks come after the others */
    const struct trib_agg_tree *tree; /* NULL: each rank sends to every aggregator */
    struct trib_shape_hosts *hosts; /* one block; NULL: no ranks sum on their host */
    /** Assign a plan the number used in its frames; rank 0 announces it to the
     * aggregators. */
    trib_status_t (*announce)(struct trib_plan *plan, const trib_desc_t *desc,
                              bool leaving, uint32_t *number_out);
    /** Release the number; rank 0 notifies the aggregators. */
    void (*free_plan)(struct trib_plan *plan);
    /** Free this object, with the communicator. */
    void (*free)(struct trib_aggregators *a);
};

#endif
