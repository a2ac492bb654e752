/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that sums, and the aggregators that are its own: no lock is taken for what
 * they do. Jobs that have something to do take turns by their weights (agg/jobs/drr.h).
 */
#ifndef TRIBD_WORKER_H
#define TRIBD_WORKER_H

#include "tribd/aggregator.h"

struct worker;

/** worker_start - errors TRIB_ERR_NO_MEMORY, TRIB_ERR_SYSTEM with a sentence in err. */
trib_status_t worker_start(struct trib_error *err, struct worker **out);

/**
 * worker_goes_on - false if the worker has aggregators and has not come round for
 * limit_ns.
 *
 * Of the server's thread, which asks now and then: the time counts from its last
 * question at which the worker had come round.
 */
bool worker_goes_on(struct worker *worker, uint64_t now_ns, uint64_t limit_ns);

/** worker_stop - once all of its aggregators are gone. */
void worker_stop(struct worker *worker);

/** worker_add - hand an aggregator to the worker, which steps it from now on; any
 * thread. */
void worker_add(struct worker *worker, struct aggregator *agg);

/** worker_wake - an aggregator of it has something to do; any thread. */
void worker_wake(struct worker *worker);

/** worker_view_mt - the time for which it was busy, and how often it looked for work;
 * not its name. */
void worker_view_mt(const struct worker *worker, struct trib_thread_view *out);

/**
 * worker_least_loaded - the one for which the fewest aggregators are meant; n is at
 * least 1.
 *
 * An aggregator counts from worker_reserve, when it is meant for the worker, to
 * worker_release, when it is gone or never came: jobs that begin together, and two
 * aggregators of one job, would else find the same worker idle while their ranks meet.
 * All three are of the server's thread.
 */
struct worker *worker_least_loaded(struct worker *const *workers, int n);
void worker_reserve(struct worker *worker);
void worker_release(struct worker *worker);

#endif
