/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The starts of offloaded plans that are under way, in the order of their numbers.
 */
#include "offload/offload_plan.h"

void trib_start_log_push(struct trib_offload_plan *s)
{
    struct trib_offload *v = s->offload;

    s->newer = NULL;
    s->pending = s->open = true;
    s->ordinal = ++v->started;
    if (v->newest)
        v->newest->newer = s;
    else
        v->oldest = s;
    v->newest = s;
}

void trib_start_log_remove(struct trib_offload_plan *s)
{
    struct trib_offload *v = s->offload;
    struct trib_offload_plan *before = NULL;

    if (!s->pending)
        return;
    for (struct trib_offload_plan *t = v->oldest; t != s; t = t->newer)
        before = t;
    if (before)
        before->newer = s->newer;
    else
        v->oldest = s->newer;
    if (v->newest == s)
        v->newest = before;
    s->pending = false;
}

void trib_offload_plan_close(struct trib_offload_plan *s, trib_status_t status)
{
    if (!s->open)
        return;
    s->open = false;
    s->status = status;
    s->n_fed = 0;
}

void trib_start_log_pop(struct trib_offload *v, trib_status_t status)
{
    struct trib_offload_plan *s = v->oldest;

    trib_start_log_remove(s);
    if (!s->open)
        return;
    v->offloaded += status == TRIB_OK && s->confirm;
    trib_offload_plan_close(s, status);
}

bool trib_offload_inner_succeeded(const struct trib_plan *plan)
{
    return atomic_load_explicit(&plan->run.state, memory_order_acquire) ==
               TRIB_RUN_DONE &&
           plan->run.status == TRIB_OK;
}

bool trib_offload_lost(const struct trib_offload *v)
{
    return !v->broken && v->channel && v->channel->engine.failed;
}
