/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How an open start of an offloaded plan comes to its end.
 */
#include "offload/offload_plan.h"

/* What ends a start for its user: the barrier, with a quorum its own operation. */
static struct trib_plan *last_of(const struct trib_offload_plan *s)
{
    return s->confirm && !trib_offload_plan_has_quorum(s) ? s->confirm : s->now;
}

/* While this rank waits at the aggregators, with the lock of their communicator. */
static void look_at_ranks(void *arg)
{
    trib_agreement_look(arg);
}

/* As that, of a user who does not wait, but asks. */
static void look_meanwhile(struct trib_offload *v)
{
    if (!v->channel || !trib_comm_try_lock(v->channel))
        return;
    look_at_ranks(v);
    trib_comm_unlock(v->channel);
}

/* One look at an open start: is it done, and was it lost? */
void trib_offload_plan_advance(struct trib_offload_plan *s)
{
    struct trib_offload *v = s->offload;

    if (trib_offload_lost(v)) {
        trib_offload_recover(v);
        return;
    }
    if (s->due) {
        if (!trib_offload_plan_needs_input(s))
            trib_offload_quorum_deliver(s);
        return;
    }
    struct trib_plan *last = last_of(s);
    trib_status_t st = trib_plan_test(last);
    if (st == TRIB_INPROGRESS)
        look_meanwhile(v);
    if (st == TRIB_INPROGRESS || trib_offload_lost(v))
        return;
    if (st == TRIB_OK && trib_offload_plan_has_quorum(s)) {
        trib_offload_quorum_end_all(v);
    } else if (st == TRIB_OK) {
        trib_start_log_pop_to(v, s->ordinal);
    } else { /* Of the spare: as any communicator's. */
        (void)trib_offload_plan_refused(s, last->comm, st);
        trib_offload_give_up(v, v->spare, st);
    }
}

/* Drives until an open start is done, or lost. */
void trib_offload_plan_wait(struct trib_offload_plan *s)
{
    struct trib_offload *v = s->offload;

    if (v->channel && !v->channel->engine.aside) {
        v->channel->engine.aside_arg = v;
        v->channel->engine.aside = look_at_ranks;
    }
    if (!s->due && !trib_offload_lost(v))
        (void)trib_plan_wait(last_of(s));
    trib_offload_plan_advance(s);
}

void trib_offload_finish(struct trib_offload *v)
{
    while (v->oldest)
        trib_offload_plan_wait(v->oldest);
}
