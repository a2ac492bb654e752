/* SPDX-License-Identifier: BSD-3-Clause */
/* TRIB_STATS: statistics of the results of plans that have a name. */
#ifndef COMM_PLAN_STATS_H
#define COMM_PLAN_STATS_H

#include "comm/communicator.h"

/** trib_plan_stats_make - where the plan is to have them; TRIB_ERR_NO_MEMORY with a
 * sentence. */
trib_status_t trib_plan_stats_make(struct trib_plan *plan, bool leaving);

/** trib_plan_stats_free - log what there is, at level info, and free it. */
void trib_plan_stats_free(struct trib_plan *plan);

/** trib_plan_stats_begin - of a start whose result goes to recv, as trib_plan_run has
 * it. */
void trib_plan_stats_begin(struct trib_plan *plan, const void *recv, bool in_place);

/** trib_plan_stats_end - a start has ended with st, and its caller has not been told
 * yet: look at the result. Once for each start; nothing happens while it runs. */
void trib_plan_stats_end(struct trib_plan *plan, trib_status_t st);

#endif
