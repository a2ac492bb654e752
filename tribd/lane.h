/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that sums, and the nodes that are its own: no lock is taken for what they do.
 * Jobs that have something to do take turns by their weights (agg/turns.h).
 */
#ifndef TRIBD_LANE_H
#define TRIBD_LANE_H

#include "tribd/node.h"

struct lane;

/** lane_start - errors TRIB_ERR_NO_MEMORY, TRIB_ERR_SYSTEM with a sentence in err. */
trib_status_t lane_start(struct trib_error *err, struct lane **out);

/** lane_stop - once all of its nodes are gone. */
void lane_stop(struct lane *lane);

/** lane_add - from now on this lane steps the node; any thread. */
void lane_add(struct lane *lane, struct node *n);

/** lane_wake - a node of it has something to do; any thread. */
void lane_wake(struct lane *lane);

/** lane_load - how many nodes it has. */
int lane_load(const struct lane *lane);

#endif
