/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends open starts of offloaded plans. */
#include <assert.h>

#include "agg/client/offload_gate.h"
#include "agg/client/offload_plan.h"
#include "comm/core/comm_lock.h"
#include "comm/core/plan_struct.h"

/* Return the plan that a user's start waits for: the barrier, or with a quorum the
 * inner plan. */
static struct trib_plan *last_of(const struct trib_offload_plan *p)
{
    return p->commit && !trib_offload_plan_has_quorum(p) ? p->commit : p->inner;
}

/* Idle hook of agg_comm, called with its lock while this rank waits there. */
static void check_ranks(void *arg)
{
    trib_agreement_check(arg);
}

/* The same for a user that polls instead of waiting. */
static void check_if_idle(struct trib_offload *o)
{
    if (!o->agg_comm || !trib_comm_try_lock(o->agg_comm))
        return;
    check_ranks(o);
    trib_comm_unlock(o->agg_comm);
}

void trib_offload_plan_advance(struct trib_offload_plan *p)
{
    struct trib_offload *o = p->offload;

    assert(p->open && p->inner);
    if (trib_offload_lost(o)) {
        trib_offload_recover(o);
        return;
    }
    if (p->pending_result) {
        if (!trib_offload_plan_needs_input(p))
            trib_offload_quorum_deliver(p);
        return;
    }
    struct trib_plan *last = last_of(p);
    trib_status_t st = last->ops->test(last);
    if (st == TRIB_INPROGRESS)
        check_if_idle(o);
    if (st == TRIB_INPROGRESS || trib_offload_lost(o))
        return;
    if (st == TRIB_OK && trib_offload_plan_has_quorum(p)) {
        trib_offload_quorum_end_all(o);
    } else if (st == TRIB_OK) {
        trib_start_log_pop_to(o, p->seq);
    } else { /* on fallback_comm every error is final */
        trib_offload_fail(o, o->fallback_comm, st);
    }
}

void trib_offload_plan_wait(struct trib_offload_plan *p)
{
    struct trib_offload *o = p->offload;

    assert(p->open && p->inner);
    if (o->agg_comm && !o->agg_comm->engine.idle_hook) {
        o->agg_comm->engine.idle_hook_arg = o;
        o->agg_comm->engine.idle_hook = check_ranks;
    }
    if (!p->pending_result && !trib_offload_lost(o))
        trib_offload_wait_outside(o, last_of(p));
    if (p->open) /* no other thread has ended it */
        trib_offload_plan_advance(p);
}

void trib_offload_finish(struct trib_offload *o)
{
    assert(!o->agg_comm);
    while (o->oldest) { /* inside the gate: no start begins */
        struct trib_plan *last = last_of(o->oldest);
        (void)last->ops->wait(last);
        trib_offload_plan_advance(o->oldest);
    }
}
