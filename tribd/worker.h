/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that sums, and the nodes that are its own: no lock is taken for what they
 * do. Jobs that have something to do take turns by their weights (agg/jobs/drr.h).
 */
#ifndef TRIBD_WORKER_H
#define TRIBD_WORKER_H

#include "tribd/node.h"

struct lane;

/** lane_start - errors TRIB_ERR_NO_MEMORY, TRIB_ERR_SYSTEM with a sentence in err. */
trib_status_t lane_start(struct trib_error *err, struct lane **out);

/**
 * lane_goes_on - false if the lane has nodes and has not come round for limit_ns.
 *
 * Of the server's thread, which asks now and then: the time counts from its last
 * question at which the lane had come round.
 */
bool lane_goes_on(struct lane *lane, uint64_t now_ns, uint64_t limit_ns);

/** lane_stop - once all of its nodes are gone. */
void lane_stop(struct lane *lane);

/** lane_add - from now on this lane steps the node; any thread. */
void lane_add(struct lane *lane, struct node *n);

/** lane_wake - a node of it has something to do; any thread. */
void lane_wake(struct lane *lane);

/** lane_view_mt - how busy it was so far, and how often it looked for work; not its
 * name. */
void lane_view_mt(const struct lane *lane, struct trib_thread_view *out);

/**
 * lane_idlest - the one for which the fewest nodes are meant; n is at least 1.
 *
 * A node counts from lane_expect, when it is meant for the lane, to lane_forget, when
 * it is gone or never came: jobs that begin together, and two nodes of one job, would
 * else find the same lane idle while their ranks meet. All three are of the server's
 * thread.
 */
struct lane *lane_idlest(struct lane *const *lanes, int n);
void lane_expect(struct lane *lane);
void lane_forget(struct lane *lane);

#endif
