/* SPDX-License-Identifier: BSD-3-Clause */
/* TRIB_STATS: statistics about the results of named plans. */
#ifndef COMM_PLAN_PLAN_STATS_H
#define COMM_PLAN_PLAN_STATS_H

#include "comm/core/communicator.h"

/** trib_plan_stats_make - attach statistics to the plan if TRIB_STATS enables them;
 * TRIB_ERR_NO_MEMORY with a message. */
trib_status_t trib_plan_stats_make(struct trib_plan *plan, bool leaving);

/** trib_plan_stats_free - log the statistics at level info and free them. */
void trib_plan_stats_free(struct trib_plan *plan);

/** trib_plan_stats_begin - record the result buffer of a start; recv is
 * trib_plan_run's. */
void trib_plan_stats_begin(struct trib_plan *plan, const void *recv, bool in_place);

/** trib_plan_stats_end - examine the result of a start that ended with st, before its
 * caller is notified. Once per start; no-op while the plan runs. */
void trib_plan_stats_end(struct trib_plan *plan, trib_status_t st);

#endif
