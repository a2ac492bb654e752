/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics of each result. The thread that waited for a result computes them before
 * returning to the caller: the caller cannot write to the buffer yet, and the engine is
 * not involved.
 */
#include "comm/plan/plan_stats.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "base/sized.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/plan_parts.h"
#include "compress/vector_stats.h"

struct trib_result_stats {
    const uint8_t *result; /* result of the running start; NULL: none on this rank */
    struct trib_numbers newest;
    uint64_t starts;
    double norms; /* sum of the norms of all results */
    uint64_t not_finite; /* NaN or Inf in all results */
};

trib_status_t trib_plan_stats_make(struct trib_plan *plan, bool leaving)
{
    const struct trib_comm *comm = plan->comm;

    assert(!plan->result_stats);
    if (!comm->cfg.stats || leaving || plan->run.desc.pairs ||
        !plan->identity.name[0] || comm->aggregators || comm->is_fallback ||
        !trib_coll_sums(plan->run.desc.op.coll) ||
        trib_op_is_located(plan->run.desc.op.op))
        return TRIB_OK;
    plan->result_stats = calloc(1, sizeof(*plan->result_stats));
    return plan->result_stats
               ? TRIB_OK
               : trib_comm_fail(plan->comm, TRIB_ERR_NO_MEMORY,
                                "no memory for the statistics of a plan");
}

void trib_plan_stats_free(struct trib_plan *plan)
{
    const struct trib_result_stats *l = plan->result_stats;

    if (l && l->starts && !trib_comm_in_child(plan->comm))
        trib_log(&plan->comm->log, TRIB_LOG_INFO, "stats",
                 "\"%s\": %" PRIu64 " results, mean norm %.6g, last norm %.6g, %" PRIu64
                 " NaN or Inf in total",
                 plan->identity.name, l->starts, l->norms / (double)l->starts,
                 sqrt(l->newest.squares), l->not_finite);
    free(plan->result_stats);
}

void trib_plan_stats_begin(struct trib_plan *plan, const void *recv, bool in_place)
{
    const struct trib_run_desc *d = &plan->run.desc;
    const int rank = plan->comm->engine.rank;
    size_t first = 0;

    if (!plan->result_stats)
        return;
    if (d->op.coll == TRIB_REDUCE_SCATTER && in_place)
        first = (size_t)rank * d->count * d->element;
    plan->result_stats->result = recv ? (const uint8_t *)recv + first : NULL;
    if (d->op.coll == TRIB_REDUCE && d->op.root != (uint32_t)rank)
        plan->result_stats->result = NULL;
}

void trib_plan_stats_end(struct trib_plan *plan, trib_status_t st)
{
    struct trib_result_stats *l = plan->result_stats;
    const struct trib_run_desc *d = &plan->run.desc;

    if (!l || !l->result || st == TRIB_INPROGRESS)
        return;
    const uint8_t *result = l->result;
    l->result = NULL;
    if (st != TRIB_OK)
        return;
    l->newest = (struct trib_numbers){.elements = 0};
    trib_numbers_add(plan->comm->engine.kernels, d->op.dtype, result, d->count,
                     &l->newest);
    l->starts++;
    l->norms += sqrt(l->newest.squares);
    l->not_finite += l->newest.not_finite;
}

trib_status_t trib_plan_stats(trib_plan_t *plan, trib_plan_stats_t *stats)
{
    static const struct trib_sized kind = {
        "trib_plan_stats_t", "sizeof(trib_plan_stats_t)", sizeof(*stats),
        TRIB_SIZED_UP_TO(trib_plan_stats_t, not_finite_in_all)};
    struct trib_error err = {0};

    if (!plan)
        return TRIB_ERR_INVALID;
    if (!stats)
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                              "trib_plan_stats: stats is NULL");
    if (trib_sized_fits(&kind, stats, &err) != TRIB_OK)
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID, "%s",
                              trib_error_text(&err));
    const struct trib_result_stats *l = plan->result_stats;
    if (!l)
        return trib_comm_fail(plan->comm, TRIB_ERR_UNSUPPORTED,
                              "this plan has no statistics: set TRIB_STATS=1 before "
                              "trib_init, and name a plan that sums");
    const trib_plan_stats_t ours = {
        .size = sizeof(ours),
        .results = l->starts,
        .elements = l->newest.elements,
        .zeros = l->newest.zeros,
        .not_finite = l->newest.not_finite,
        .norm = sqrt(l->newest.squares),
        .mean_norm = l->starts ? l->norms / (double)l->starts : 0,
        .largest = l->newest.largest,
        .not_finite_in_all = l->not_finite,
    };
    trib_sized_give(&kind, &ours, stats);
    return TRIB_OK;
}
