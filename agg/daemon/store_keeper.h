/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Snapshots of one store: scheduling, copying, and reporting results.
 *
 * A thread walks over a vector and copies it, and pushes follow behind the walk
 * (store_walk.h). A thread of the archive writes the copy. Only one copy exists at a
 * time, so a store needs memory for a copy of its longest vector.
 *
 * Threads: all threads of the store, except store_keeper_step, which only one calls.
 */
#ifndef AGG_DAEMON_STORE_KEEPER_H
#define AGG_DAEMON_STORE_KEEPER_H

#include "agg/daemon/store_job.h"
#include "base/error.h"

struct store_keeper;

/* Result of an order. */
struct store_kept {
    struct trib_control_store_snapshot what;
    uint64_t changes; /* of the vector when copied */
    struct trib_error err;
};

/**
 * store_keeper_create - create a keeper.
 *
 * opts     of the store; outlives the keeper
 * writer   counts snapshots; or NULL
 * wake_fd  eventfd written when store_keeper_step has a result
 * errors   TRIB_ERR_NO_MEMORY
 */
trib_status_t store_keeper_create(const struct store_job_opts *opts,
                                  struct trib_store_table *table,
                                  struct trib_metrics_writer *writer, int wake_fd,
                                  struct store_keeper **out);

/** store_keeper_free - wait for the current task and free the keeper; NULL is
 * allowed. */
void store_keeper_free(struct store_keeper *keeper);

/** store_keeper_give - start an order of a rank unless another is running; true: it
 * failed, and `out` has the reason. */
bool store_keeper_give(struct store_keeper *keeper,
                       const struct trib_control_store_snapshot *what,
                       struct store_kept *out);

/** store_keeper_abandon - a rank that waits for this order is lost: a restore that is
 * not done yet is discarded, because it would undo the pushes that follow without it.
 */
void store_keeper_abandon(struct store_keeper *keeper,
                          const struct trib_control_store_snapshot *what);

/** store_keeper_step - start periodic snapshots that are due and finish a completed
 * task, which may take long (tick); true: `out` has its result. */
bool store_keeper_step(struct store_keeper *keeper, const struct trib_store_tick *tick,
                       struct store_kept *out);

/** store_keeper_last - write all changes since the last snapshots and wait for
 * completion. No other thread may use the store any longer. */
void store_keeper_last(struct store_keeper *keeper);

/** store_keeper_found - record the existing snapshot of a vector. */
void store_keeper_found(struct store_keeper *keeper, uint32_t vector);

#endif
