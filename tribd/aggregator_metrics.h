/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of what an aggregator does, for agg/metrics/metrics.h. All functions are for
 * the aggregator's worker, except aggregator_metrics_open, aggregator_metrics_wired and
 * aggregator_metrics_close.
 *
 * How late a rank is: before each step, which ranks have a frame that is next; after
 * it, whether a chunk was summed. So it is known of one chunk of a step at most, and as
 * exactly as steps follow one another; it costs a look at lines that the step reads as
 * well, and ranks nothing.
 *
 * A step looks at AGGREGATOR_METRICS_LOOKS ranks, in turn: of a job with more, a rank
 * is seen as often as steps come round to it. All ranks are gone through where a chunk
 * was summed, which has as many parts.
 */
#ifndef TRIBD_AGGREGATOR_METRICS_H
#define TRIBD_AGGREGATOR_METRICS_H

#include "agg/metrics/metrics.h"
#include "comm/communicator.h"

struct aggregator_metrics;

enum { AGGREGATOR_METRICS_LOOKS = 64 };

/** aggregator_metrics_open - start counting for job `id`; peers[r]: rank r has a link
 * here. NULL without memory, and nothing is counted. */
struct aggregator_metrics *aggregator_metrics_open(struct trib_metrics *metrics,
                                                   uint64_t id, int ranks,
                                                   const bool *peers);

/** aggregator_metrics_wired - the ranks have met: by what they are reached, and where
 * they are. */
void aggregator_metrics_wired(struct aggregator_metrics *w,
                              const struct trib_engine *e);

/** aggregator_metrics_close - its worker has done with it; NULL is allowed. */
void aggregator_metrics_close(struct aggregator_metrics *w);

/** aggregator_metrics_before_step, aggregator_metrics_after_step - around each step of
 * the aggregator; NULL is allowed. */
void aggregator_metrics_before_step(struct aggregator_metrics *w,
                                    const struct trib_engine *e);
void aggregator_metrics_after_step(struct aggregator_metrics *w,
                                   const struct trib_engine *e);

/** aggregator_metrics_moved - something moved in a step, which ended at now_ns:
 * operations begin and end. */
void aggregator_metrics_moved(struct aggregator_metrics *w, const struct trib_engine *e,
                              uint64_t now_ns);

/** aggregator_metrics_turn_ends - its turn on the worker is over; end_ns: of the last
 * step in which something moved, begin_ns: there was none. */
void aggregator_metrics_turn_ends(struct aggregator_metrics *w, struct trib_engine *e,
                                  uint64_t begin_ns, uint64_t end_ns);

#endif
