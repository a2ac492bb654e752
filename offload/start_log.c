/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The starts of offloaded plans that are under way, in the order of their numbers.
 */
#include "offload/offload_plan.h"

void trib_served_push(struct trib_served *s)
{
    struct trib_service *v = s->service;

    s->newer = NULL;
    s->pending = s->open = true;
    s->ordinal = ++v->started;
    if (v->newest)
        v->newest->newer = s;
    else
        v->oldest = s;
    v->newest = s;
}

void trib_served_drop(struct trib_served *s)
{
    struct trib_service *v = s->service;
    struct trib_served *before = NULL;

    if (!s->pending)
        return;
    for (struct trib_served *t = v->oldest; t != s; t = t->newer)
        before = t;
    if (before)
        before->newer = s->newer;
    else
        v->oldest = s->newer;
    if (v->newest == s)
        v->newest = before;
    s->pending = false;
}

void trib_served_close(struct trib_served *s, trib_status_t status)
{
    if (!s->open)
        return;
    s->open = false;
    s->status = status;
    s->n_fed = 0;
}

void trib_served_pop(struct trib_service *v, trib_status_t status)
{
    struct trib_served *s = v->oldest;

    trib_served_drop(s);
    if (!s->open)
        return;
    v->served += status == TRIB_OK && s->confirm;
    trib_served_close(s, status);
}

bool trib_served_done_well(const struct trib_plan *plan)
{
    return atomic_load_explicit(&plan->run.state, memory_order_acquire) ==
               TRIB_RUN_DONE &&
           plan->run.status == TRIB_OK;
}

bool trib_service_lost(const struct trib_service *v)
{
    return !v->broken && v->channel && v->channel->engine.failed;
}
