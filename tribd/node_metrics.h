/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a node does, counted for those who look at it (agg/metrics/metrics.h). Of the
 * node's lane, except watch_open, watch_met and watch_close.
 *
 * How late a rank is: before each step, which ranks have a frame that is next; after
 * it, whether a chunk was summed. So it is known of one chunk of a step at most, and as
 * exactly as steps follow one another; it costs a look at lines that the step reads as
 * well, and ranks nothing.
 *
 * A step looks at WATCH_LOOKS ranks, in turn: of a job with more, a rank is seen as
 * often as steps come round to it. All ranks are gone through where a chunk was summed,
 * which has as many parts.
 */
#ifndef TRIBD_NODE_METRICS_H
#define TRIBD_NODE_METRICS_H

#include "agg/metrics/metrics.h"
#include "comm/communicator.h"

struct watch;

enum { WATCH_LOOKS = 64 };

/** watch_open - of job `id`; peers[ranks]: with whom it has links. NULL: no memory, and
 * nothing is counted. */
struct watch *watch_open(struct trib_metrics *metrics, uint64_t id, int ranks,
                         const bool *peers);

/** watch_met - the ranks have met: by what they are reached, and where they are. */
void watch_met(struct watch *w, const struct trib_engine *e);

/** watch_close - its lane has done with it; NULL is allowed. */
void watch_close(struct watch *w);

/** watch_before, watch_after - around each step of the node; NULL is allowed. */
void watch_before(struct watch *w, const struct trib_engine *e);
void watch_after(struct watch *w, const struct trib_engine *e);

/** watch_step - something moved in a step, which ended at now_ns: operations begin and
 * end. */
void watch_step(struct watch *w, const struct trib_engine *e, uint64_t now_ns);

/** watch_turn - its turn on the lane is over; end_ns: of the last step in which
 * something moved, begin_ns: there was none. */
void watch_turn(struct watch *w, struct trib_engine *e, uint64_t begin_ns,
                uint64_t end_ns);

#endif
