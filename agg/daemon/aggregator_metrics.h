/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of an aggregator, for agg/metrics/metrics.h. Only the aggregator's worker
 * calls these functions, except aggregator_metrics_open, aggregator_metrics_wired and
 * aggregator_metrics_close.
 *
 * Lag of ranks: before each step, note which ranks have their next frame; after it,
 * check whether a chunk was summed. So at most one chunk per step is measured, with the
 * interval of steps as resolution. The cost is one read of cache lines that the step
 * reads anyway; ranks pay nothing.
 *
 * A step checks AGGREGATOR_METRICS_LOOKS ranks in turn, so ranks of larger jobs are
 * checked less often. After a sum all ranks are visited, which is proportional to its
 * contributions.
 */
#ifndef AGG_DAEMON_AGGREGATOR_METRICS_H
#define AGG_DAEMON_AGGREGATOR_METRICS_H

#include "agg/metrics/metrics.h"
#include "comm/core/communicator.h"

struct aggregator_metrics;

enum { AGGREGATOR_METRICS_LOOKS = 64 };

/** aggregator_metrics_open - start counting for job `id`; peers[r]: rank r has a link
 * here. NULL: out of memory, nothing is counted. */
struct aggregator_metrics *aggregator_metrics_open(struct trib_metrics *metrics,
                                                   uint64_t id, int ranks,
                                                   const bool *peers);

/** aggregator_metrics_wired - record transports and hosts of the ranks after wireup. */
void aggregator_metrics_wired(struct aggregator_metrics *w,
                              const struct trib_engine *e);

/** aggregator_metrics_close - close the counters when its worker no longer uses them;
 * NULL is allowed. */
void aggregator_metrics_close(struct aggregator_metrics *w);

/** aggregator_metrics_before_step, aggregator_metrics_after_step - call around each
 * step of the aggregator; NULL is allowed. */
void aggregator_metrics_before_step(struct aggregator_metrics *w,
                                    const struct trib_engine *e);
void aggregator_metrics_after_step(struct aggregator_metrics *w,
                                   const struct trib_engine *e);

/** aggregator_metrics_moved - record the start and end of operations after a step that
 * made progress and ended at now_ns. */
void aggregator_metrics_moved(struct aggregator_metrics *w, const struct trib_engine *e,
                              uint64_t now_ns);

/** aggregator_metrics_turn_ends - end its turn on the worker. end_ns: end of the last
 * step that made progress; begin_ns if none did. */
void aggregator_metrics_turn_ends(struct aggregator_metrics *w, struct trib_engine *e,
                                  uint64_t begin_ns, uint64_t end_ns);

#endif
