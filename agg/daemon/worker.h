/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker thread, which sums, and its aggregators. Stepping them takes no lock. Jobs
 * with work take turns by their weights (agg/jobs/drr.h).
 */
#ifndef AGG_DAEMON_WORKER_H
#define AGG_DAEMON_WORKER_H

#include "agg/daemon/aggregator.h"

struct worker;

/** worker_start - start a worker; errors: TRIB_ERR_NO_MEMORY, TRIB_ERR_SYSTEM. */
trib_status_t worker_start(struct trib_error *err, struct worker **out);

/**
 * worker_goes_on - return false if the worker has aggregators and made no pass for
 * limit_ns.
 *
 * The server thread calls it periodically; the time counts from the last call that saw
 * progress.
 */
bool worker_goes_on(struct worker *worker, uint64_t now_ns, uint64_t limit_ns);

/** worker_stop - end the thread; all of its aggregators must be gone. */
void worker_stop(struct worker *worker);

/** worker_add - hand an aggregator to the worker, which steps it from now on; any
 * thread. */
void worker_add(struct worker *worker, struct aggregator *agg);

/** worker_wake - wake the worker because an aggregator has work; any thread. */
void worker_wake(struct worker *worker);

/** worker_view_mt - return busy time and passes; does not set the name. */
void worker_view_mt(const struct worker *worker, struct trib_thread_view *out);

/**
 * worker_least_loaded - return the worker with the fewest assigned aggregators; n is at
 * least 1.
 *
 * An aggregator counts from worker_reserve, when assigned, to worker_release, when gone
 * or never started. Otherwise jobs that start together, or two aggregators of one job,
 * would choose the same worker during the wireup. The server thread calls all three
 * functions.
 */
struct worker *worker_least_loaded(struct worker *const *workers, int n);
void worker_reserve(struct worker *worker);
void worker_release(struct worker *worker);

#endif
