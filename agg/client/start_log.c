/* SPDX-License-Identifier: BSD-3-Clause */
/* The start log: starts of offloaded plans in flight, ordered by number. */
#include <assert.h>

#include "agg/client/offload_plan.h"
#include "comm/core/plan_struct.h"

void trib_start_log_push(struct trib_offload_plan *p)
{
    struct trib_offload *o = p->offload;

    assert(!p->pending && !p->open);
    p->newer = NULL;
    p->pending = p->open = true;
    p->seq = ++o->started;
    if (o->newest)
        o->newest->newer = p;
    else
        o->oldest = p;
    o->newest = p;
    assert(o->oldest && o->started >= o->committed);
}

void trib_start_log_remove(struct trib_offload_plan *p)
{
    struct trib_offload *o = p->offload;
    struct trib_offload_plan *before = NULL;

    if (!p->pending)
        return;
    for (struct trib_offload_plan *t = o->oldest; t != p; t = t->newer)
        before = t;
    if (before)
        before->newer = p->newer;
    else
        o->oldest = p->newer;
    if (o->newest == p)
        o->newest = before;
    p->pending = false;
}

void trib_offload_plan_close(struct trib_offload_plan *p, trib_status_t status)
{
    if (!p->open)
        return;
    p->open = false;
    p->status = status;
    p->n_ready = 0;
}

void trib_start_log_pop(struct trib_offload *o, trib_status_t status)
{
    struct trib_offload_plan *p = o->oldest;

    assert(p && p->pending);
    trib_start_log_remove(p);
    if (!p->open)
        return;
    o->offloaded += status == TRIB_OK && p->commit;
    trib_offload_plan_close(p, status);
}

bool trib_offload_inner_succeeded(const struct trib_plan *plan)
{
    return atomic_load_explicit(&plan->run.now.state, memory_order_acquire) ==
               TRIB_RUN_DONE &&
           plan->run.now.status == TRIB_OK;
}

bool trib_offload_lost(const struct trib_offload *o)
{
    return !o->broken && o->agg_comm && o->agg_comm->engine.failed;
}
