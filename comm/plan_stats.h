/* SPDX-License-Identifier: BSD-3-Clause */
/* TRIB_STATS: statistics of the results of plans that have a name. */
#ifndef COMM_PLAN_STATS_H
#define COMM_PLAN_STATS_H

#include "comm/communicator.h"

/** trib_plan_stats_make - give the plan statistics if TRIB_STATS wants them;
 * TRIB_ERR_NO_MEMORY with a sentence. */
trib_status_t trib_plan_stats_make(struct trib_plan *plan, bool leaving);

/** trib_plan_stats_free - log the statistics at level info, and free them. */
void trib_plan_stats_free(struct trib_plan *plan);

/** trib_plan_stats_begin - note the buffer of a start's result; recv is that of
 * trib_plan_run. */
void trib_plan_stats_begin(struct trib_plan *plan, const void *recv, bool in_place);

/** trib_plan_stats_end - look at the result of a start that has ended with st, before
 * its caller hears of it. Once for each start; nothing happens while the plan runs. */
void trib_plan_stats_end(struct trib_plan *plan, trib_status_t st);

#endif
