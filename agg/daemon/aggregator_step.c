/* SPDX-License-Identifier: BSD-3-Clause */
/* An aggregator on its worker: its state, its plans, its steps and its end. */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agg/daemon/aggregator.h"
#include "base/time.h"
#include "base/token_bucket.h"

/* Token bucket for making and freeing plans: burst, and interval per plan. */
enum { PLANS_AT_ONCE = AGGREGATOR_PLANS_WAITING_MAX, PLAN_NS = 500000 };

static void wake(int fd)
{
    const uint64_t one = 1;

    (void)!write(fd, &one, sizeof(one));
}

void aggregator_wake_server(const struct aggregator *agg)
{
    wake(agg->wake_fd);
}

/* The server may free a GONE aggregator and exit, so use neither after the store. If no
 * descriptor can be duplicated, the server notices at its next tick. */
void aggregator_set_state(struct aggregator *agg, enum aggregator_state state)
{
    const int fd = fcntl(agg->wake_fd, F_DUPFD_CLOEXEC, 3);

    assert(state != AGGREGATOR_WIREUP);
    atomic_store(&agg->state, state);
    if (fd < 0)
        return;
    wake(fd);
    close(fd);
}

static struct plan_announcement *take_announcement(struct aggregator *agg)
{
    struct plan_announcement *a = NULL;
    bool caught_up = false;

    if (pthread_mutex_trylock(&agg->mutex) != 0)
        return NULL;
    if (agg->first) {
        a = agg->first;
        assert(atomic_load(&agg->n_announced) > 0);
        agg->first = a->next;
        if (!agg->first)
            agg->last = NULL;
        caught_up =
            atomic_fetch_sub(&agg->n_announced, 1) - 1 <= AGGREGATOR_CAUGHT_UP &&
            agg->behind;
        agg->behind &= !caught_up;
    }
    pthread_mutex_unlock(&agg->mutex);
    if (caught_up)
        aggregator_wake_server(agg);
    return a;
}

/* Return true if the token bucket allows a plan. A job gets its plans at once, and
 * later a limited rate, because making plans takes time from other jobs. */
static bool may_take(struct aggregator *agg)
{
    return trib_token_bucket_take(&agg->plans_paid, trib_now_ns(), PLAN_NS,
                                  PLANS_AT_ONCE);
}

/* Process one announcement per step, so that the worker can count it and serve
 * others. */
static bool take_plan(struct aggregator *agg)
{
    struct plan_announcement *a = NULL;

    if (atomic_load_explicit(&agg->n_announced, memory_order_relaxed) && may_take(agg))
        a = take_announcement(agg);
    if (!a)
        return false;
    agg->plans_taken++;
    const trib_status_t st = trib_agg_comm_announced(agg->comm, a->number, a->text);
    if (st != TRIB_OK) {
        char why[400];
        snprintf(why, sizeof(why), "an aggregator refused plan %u: %.300s", a->number,
                 trib_last_error(agg->comm));
        trib_engine_fail(&agg->comm->engine, st, why);
    }
    free(a);
    return true;
}

bool aggregator_step(struct aggregator *agg)
{
    struct trib_engine *e = &agg->comm->engine;

    if (e->failed)
        return false;
    bool moved = take_plan(agg);
    if (!e->failed) {
        aggregator_metrics_before_step(agg->metrics, e);
        moved |= trib_agg_comm_step(agg->comm);
        aggregator_metrics_after_step(agg->metrics, e);
    }
    if (!e->failed)
        return moved;
    snprintf(agg->why, sizeof(agg->why), "%.390s", trib_error_text(&e->failure));
    aggregator_set_state(agg, AGGREGATOR_FAILED);
    return true;
}

/* Notify all ranks: only rank 0 has a control connection. */
static void notify_ranks(struct aggregator *agg, const char *why)
{
    struct trib_engine *e = &agg->comm->engine;
    char text[400];

    assert(why[0]);
    snprintf(text, sizeof(text), "the service on host %.64s: %.300s",
             e->peers[e->rank].host, why);
    trib_engine_fail(e, TRIB_ERR_ABORTED, text);
}

void aggregator_dispose(struct aggregator *agg)
{
    char notice[sizeof(agg->notice)];

    assert(agg->comm);
    pthread_mutex_lock(&agg->mutex);
    memcpy(notice, agg->notice, sizeof(notice));
    pthread_mutex_unlock(&agg->mutex);
    if (!agg->why[0] && (notice[0] || !atomic_load(&agg->ending)))
        snprintf(agg->why, sizeof(agg->why), "%s",
                 notice[0] ? notice : "the service is shutting down");
    if (agg->why[0] && (notice[0] || atomic_load(&agg->draining)))
        notify_ranks(agg, agg->why);
    if (agg->comm->engine.failed)
        trib_engine_notify_failure(&agg->comm->engine);
    agg->comm->engine.notifies_later = false;
    trib_agg_comm_dispose(agg->comm);
    agg->comm = NULL;
    aggregator_set_state(agg, AGGREGATOR_GONE);
}
