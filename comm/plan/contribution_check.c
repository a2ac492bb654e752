/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/plan/contribution_check.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/plan_parts.h"
#include "pipeline/payload/check.h"

static trib_status_t fail_all(struct trib_plan *plan, const char *text)
{
    if (plan->ops->fail)
        plan->ops->fail(plan, TRIB_ERR_INVALID, text);
    trib_comm_fail_all(plan->comm, TRIB_ERR_INVALID, text);
    return TRIB_ERR_INVALID;
}

static trib_status_t check_values(struct trib_plan *plan, const char *x, size_t first,
                                  size_t n)
{
    const struct trib_run_desc *d = &plan->run.desc;
    const struct trib_kernels *k = plan->comm->engine.kernels;
    const char *name =
        d->op.leaving || !plan->run.desc.label ? NULL : plan->run.desc.label;
    char text[240], of[64] = "";

    assert(x && d->check.finite);
    x += first * d->element;
    if (name)
        snprintf(of, sizeof(of), " of \"%.40s\"", name);
    const size_t at = trib_check_first_bad(k, d->op.dtype, x, n);
    if (at < n) {
        snprintf(text, sizeof(text),
                 "rank %d gave NaN or an infinity, element %zu%s, in %s (TRIB_CHECK)",
                 plan->comm->engine.rank, first + at, of, trib_coll_name(d->op.coll));
        return fail_all(plan, text);
    }
    if (d->check.norm > 0)
        plan->squares += trib_check_squares(d->op.dtype, k, x, n);
    if (sqrt(plan->squares) <= d->check.norm || d->check.norm <= 0)
        return TRIB_OK;
    snprintf(text, sizeof(text),
             "rank %d gave a vector%s with norm %g, more than %g, in %s (TRIB_CHECK)",
             plan->comm->engine.rank, of, sqrt(plan->squares), d->check.norm,
             trib_coll_name(d->op.coll));
    return fail_all(plan, text);
}

trib_status_t trib_check_start(struct trib_plan *plan, const void *send,
                               const void *recv)
{
    const struct trib_run_desc *d = &plan->run.desc;

    plan->squares = 0;
    if (!d->check.finite || !trib_coll_sums(d->op.coll) ||
        d->op.feed != TRIB_FEED_WHOLE || !plan->lengths[0] || plan->identity.inner)
        return TRIB_OK;
    return check_values(plan, send ? send : recv, 0, plan->lengths[0]);
}

trib_status_t trib_check_fed(struct trib_plan *plan, size_t first, size_t count)
{
    if (!plan->run.desc.check.finite || plan->identity.inner)
        return TRIB_OK;
    const void *x = plan->ops->input(plan);
    /* NULL if the plan was not started, which trib_plan_ready refuses. */
    return x ? check_values(plan, x, first, count) : TRIB_OK;
}
