/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Access to ranges of a plan's residual: frameworks move gradients between vectors, and
 * the residual must move with them.
 */
#include <assert.h>
#include <string.h>

#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "pipeline/payload/error_feedback.h"
#include "pipeline/payload/undo_log.h"

/* Find the run of an idle plan whose residual has elements [first, first + count). */
static trib_status_t find(struct trib_plan *plan, const char *call, size_t first,
                          size_t count, struct trib_run **run_out)
{
    struct trib_comm *comm = plan->comm;
    trib_status_t st = trib_comm_ours(comm, call);

    if (st != TRIB_OK)
        return st;
    struct trib_plan *by = plan->ops->computing(plan);
    struct trib_run *run = &by->run;
    if (plan->ops->busy(plan) || by->ops->busy(by))
        return trib_comm_fail(comm, TRIB_ERR_BUSY,
                              "the plan is still running: wait for it before %s", call);
    const struct trib_feedback *f = trib_feedback_of(run);
    if (run->now.state == TRIB_RUN_DONE && run->now.status != TRIB_OK)
        return run->now.status; /* the start was aborted midway */
    if (!f->residual)
        return trib_comm_fail(
            comm, TRIB_ERR_UNSUPPORTED,
            "%s: the plan keeps no residual: codec is %s, feedback is %s", call,
            by->codec ? trib_codec_info(by->codec)->text : "none",
            by->codec ? run->desc.feedback.text : "none");
    if (first > run->desc.total || count > run->desc.total - first)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "%s: elements %zu to %zu are outside a residual of %zu",
                              call, first, first + count, run->desc.total);
    *run_out = run;
    return TRIB_OK;
}

trib_status_t trib_plan_residual_get(trib_plan_t *plan, size_t first, size_t count,
                                     float *residual)
{
    struct trib_run *run;

    if (!plan || (!residual && count))
        return TRIB_ERR_INVALID;
    (void)trib_plan_hold(plan);
    trib_status_t st = find(plan, "trib_plan_residual_get", first, count, &run);
    if (st == TRIB_OK && count)
        memcpy(residual, trib_feedback_of(run)->residual + first,
               count * sizeof(*residual));
    trib_plan_let_go(plan);
    return st;
}

trib_status_t trib_plan_residual_set(trib_plan_t *plan, size_t first, size_t count,
                                     const float *residual)
{
    struct trib_run *run;

    if (!plan || (!residual && count))
        return TRIB_ERR_INVALID;
    (void)trib_plan_hold(plan);
    trib_status_t st = find(plan, "trib_plan_residual_set", first, count, &run);
    if (st == TRIB_OK && count) {
        memcpy(trib_feedback_of(run)->residual + first, residual,
               count * sizeof(*residual));
        trib_feedback_loaded(run);
        trib_undo_forget(run);
    }
    trib_plan_let_go(plan);
    return st;
}
