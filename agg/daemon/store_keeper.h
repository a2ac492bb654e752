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

#include <stdatomic.h>

#include "agg/daemon/store_job.h"
#include "base/error.h"

struct store_keeper;

/* Set by the store. */
struct store_end {
    _Atomic bool ended; /* no rank waits for a snapshot any longer */
    _Atomic bool discards; /* an operator or another store has ended it: further
                            * snapshots are discarded */
};

/* Order of a rank. */
struct store_order {
    uint64_t number; /* in order of arrival, from 1; 0: none */
    uint64_t changes; /* of the vector on arrival */
    struct trib_control_store_snapshot what;
};

/* Result of an order, which answers equal orders, too. */
struct store_kept {
    struct trib_control_store_snapshot what;
    uint64_t changes; /* of the vector when copied */
    uint64_t last_order; /* number of the last order that it may answer */
    struct trib_error err;
};

/**
 * store_keeper_create - create a keeper.
 *
 * opts     of the store; outlives the keeper
 * end      of the store; outlives the keeper
 * writer   counts snapshots; or NULL
 * wake_fd  eventfd written when store_keeper_step has a result
 * errors   TRIB_ERR_NO_MEMORY
 */
trib_status_t store_keeper_create(const struct store_job_opts *opts,
                                  struct trib_store_table *table,
                                  const struct store_end *end,
                                  struct trib_metrics_writer *writer, int wake_fd,
                                  struct store_keeper **out);

/** store_keeper_detach - wait until the current snapshot is copied. The keeper then no
 * longer uses the vectors, and only store_keeper_free may follow. */
void store_keeper_detach(struct store_keeper *keeper);

/** store_keeper_free - wait for the current task and free the keeper; NULL is
 * allowed. */
void store_keeper_free(struct store_keeper *keeper);

/** store_keeper_give - queue the order of a rank without another one, and return it;
 * orders are executed one at a time, the oldest first. */
struct store_order store_keeper_give(struct store_keeper *keeper, uint32_t rank,
                                     const struct trib_control_store_snapshot *what);

/** store_keeper_answers - return true if a result answers an order, which has then left
 * the queue. A snapshot older than an order does not answer it. */
bool store_keeper_answers(const struct store_kept *kept,
                          const struct store_order *order);

/** store_keeper_withdraw - a rank with an order is lost. A restore that is not done yet
 * is discarded, because it would undo the pushes that follow without it. */
void store_keeper_withdraw(struct store_keeper *keeper, uint32_t rank);

/** store_keeper_step - finish a completed task, which may take long (tick), or begin an
 * order or a periodic snapshot that is due; true: `out` has a result. */
bool store_keeper_step(struct store_keeper *keeper, const struct trib_store_tick *tick,
                       struct store_kept *out);

/** store_keeper_last - write all changes since the last snapshots and wait for
 * completion; failed ones are tried again for some seconds. No other thread may use the
 * store any longer. */
void store_keeper_last(struct store_keeper *keeper);

/** store_keeper_found - record the existing snapshot of a vector. */
void store_keeper_found(struct store_keeper *keeper, uint32_t vector);

#endif
