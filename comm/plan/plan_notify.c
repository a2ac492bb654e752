/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion callbacks and descriptors of plans.
 *
 * Such a plan has its own table, so other plans do not pay for this. Every thread that
 * drives the engine checks for completed plans: the progress thread, and callers that
 * wait, test or make progress. A thread claims a completed start by changing its state,
 * then runs the callback without the lock. A plan run by other engines (agg/client/) is
 * also claimed for polling.
 */
#include "comm/plan/plan_notify.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/wait.h"
#include "comm/core/comm_lock.h"
#include "comm/core/comm_setup.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/core/progress_thread.h"
#include "comm/plan/plan_feedback.h"

enum state {
    NOTHING, /* no start, or its completion was delivered */
    ARMED, /* a start whose completion must be delivered */
    CALLING, /* a thread is in the callback */
    CALLED, /* the callback has returned */
};

struct trib_plan_notify {
    struct trib_plan *plan;
    struct trib_plan_notify *next; /* in comm->notified; guarded by the lock */
    const struct trib_plan_ops *ops; /* the plan's original table */
    struct trib_plan_ops with; /* its current table */
    trib_done_fn call;
    void *arg;
    int fd; /* -1: no descriptor */
    void (*then)(void *arg); /* called once trib_plan_test is final; or NULL */
    void *then_arg;
    _Atomic int state;
    _Atomic(pthread_t) caller; /* thread in the callback; 0: none */
};

static bool is_done(const struct trib_plan *plan)
{
    return atomic_load_explicit(&plan->run.now.state, memory_order_acquire) ==
           TRIB_RUN_DONE;
}

/* Return true in the one thread that must deliver this completion. */
static bool claim(struct trib_plan_notify *n)
{
    int armed = ARMED;

    if (!atomic_compare_exchange_strong(&n->state, &armed, CALLING))
        return false;
    atomic_store(&n->caller, pthread_self());
    return true;
}

/* Deliver a status, without the lock. State NOTHING allows the plan to be freed. */
static void tell(struct trib_plan_notify *n, trib_status_t st)
{
    const uint64_t one = 1;

    assert(atomic_load(&n->state) == CALLING && st != TRIB_INPROGRESS);
    if (n->call)
        n->call(n->arg, st);
    atomic_store(&n->caller, 0);
    atomic_store(&n->state, CALLED);
    if (n->then)
        n->then(n->then_arg);
    if (n->fd >= 0)
        (void)!write(n->fd, &one, sizeof(one));
    atomic_store(&n->state, NOTHING);
}

/* Deliver the status of a completed start. */
static void run_callback(struct trib_plan_notify *n)
{
    trib_status_t st;

    for (unsigned turn = 1; (st = n->ops->test(n->plan)) == TRIB_INPROGRESS; turn++)
        trib_wait_turn(turn, TRIB_WAIT_YIELDS); /* another thread scales the result */
    tell(n, st);
}

/* Poll a start run by other engines and deliver its completion, without the lock. The
 * claim keeps the plan from being freed. */
static bool poll_start(struct trib_plan_notify *n)
{
    const trib_status_t st = n->ops->poll(n->plan);

    if (st != TRIB_INPROGRESS) {
        tell(n, st);
        return true;
    }
    atomic_store(&n->caller, 0);
    atomic_store(&n->state, ARMED);
    return false;
}

/* Return true if the newest start's completion was delivered, by this thread if
 * necessary, or if the caller is the callback itself. */
static bool settle(struct trib_plan_notify *n)
{
    if (claim(n))
        run_callback(n);
    /* A caller woken by the descriptor may arrive this early. */
    for (unsigned turn = 1; atomic_load(&n->state) == CALLED; turn++)
        trib_wait_turn(turn, TRIB_WAIT_YIELDS);
    return atomic_load(&n->state) == NOTHING ||
           pthread_equal(atomic_load(&n->caller), pthread_self());
}

static struct trib_plan_notify *at(const struct trib_comm *comm, unsigned place)
{
    struct trib_plan_notify *n = comm->notified;

    while (n && place--)
        n = n->next;
    return n;
}

/* Claim this start if it must be delivered or polled. */
static bool takes(struct trib_plan_notify *n)
{
    return atomic_load(&n->state) == ARMED && (n->ops->poll || is_done(n->plan)) &&
           claim(n);
}

/* The run_callbacks of a communicator. While the lock is released, the list may change
 * and earlier plans may complete. So the scan restarts after each delivery: an
 * otherwise idle progress thread would not scan again. */
static bool run_callbacks(struct trib_comm *comm)
{
    struct trib_plan_notify *n;
    unsigned place = 0;
    bool again = false;

    assert(atomic_load(&comm->lock));
    while ((n = at(comm, place))) {
        bool notified = true;
        if (!takes(n)) {
            place++;
            continue;
        }
        trib_comm_unlock(comm);
        if (n->ops->poll)
            notified = poll_start(n);
        else
            run_callback(n);
        trib_comm_lock(comm);
        again |= !notified;
        place = notified ? 0 : place + 1;
    }
    return again;
}

static trib_status_t start(struct trib_plan *plan, const void *send, void *recv)
{
    struct trib_plan_notify *n = plan->notify;
    struct trib_comm *comm = plan->comm;
    uint64_t count;

    if (n->ops->busy(plan))
        return trib_comm_fail(comm, TRIB_ERR_BUSY,
                              "the plan is still running: wait for it first");
    if (!settle(n) || atomic_load(&n->state) != NOTHING)
        return trib_comm_fail(comm, TRIB_ERR_BUSY,
                              "the callback of trib_plan_notify has not returned: it "
                              "may start other plans, but not its own");
    if (n->fd >= 0)
        (void)!read(n->fd, &count, sizeof(count));
    trib_comm_lock(comm);
    trib_status_t st = trib_progress_thread_start(comm); /* so that it can deliver the
                                                          * completion */
    trib_comm_unlock(comm);
    if (st == TRIB_OK)
        st = n->ops->start(plan, send, recv);
    if (st != TRIB_OK)
        return st;
    trib_comm_lock(comm);
    atomic_store(&n->state, ARMED);
    /* The progress thread may have checked too early, or have become idle. */
    if (n->ops->poll || is_done(plan))
        st = trib_progress_thread_start(comm);
    trib_comm_unlock(comm);
    return st;
}

static trib_status_t test(struct trib_plan *plan)
{
    const trib_status_t st = plan->notify->ops->test(plan);

    return st == TRIB_INPROGRESS || settle(plan->notify) ? st : TRIB_INPROGRESS;
}

static trib_status_t wait(struct trib_plan *plan)
{
    const trib_status_t st = plan->notify->ops->wait(plan);

    for (unsigned turn = 1; !settle(plan->notify); turn++)
        trib_wait_turn(turn, TRIB_WAIT_YIELDS);
    return st;
}

static bool busy(const struct trib_plan *plan)
{
    return plan->notify->ops->busy(plan) || !settle(plan->notify) ||
           atomic_load(&plan->notify->state) != NOTHING;
}

static void destroy(struct trib_plan *plan)
{
    struct trib_comm *comm = plan->comm;
    struct trib_plan_notify *n = plan->notify, **at = &comm->notified;
    const bool shared = !trib_comm_in_child(comm); /* a child's lock is a copy */

    if (shared)
        trib_comm_lock(comm);
    while (*at != n)
        at = &(*at)->next;
    *at = n->next;
    if (shared)
        trib_comm_unlock(comm);
    if (n->fd >= 0)
        close(n->fd);
    plan->ops = n->ops;
    plan->notify = NULL;
    free(n);
    if (plan->ops->destroy)
        plan->ops->destroy(plan);
}

/* Find or create the struct of a plan that is not running. */
static trib_status_t notify_of(struct trib_plan *plan, const char *call,
                               struct trib_plan_notify **out)
{
    struct trib_comm *comm = plan->comm;
    struct trib_plan_notify *n = plan->notify;
    const trib_status_t st = trib_plan_idle(plan, call);

    if (st != TRIB_OK)
        return st;
    *out = n;
    if (n)
        return TRIB_OK;
    n = calloc(1, sizeof(*n));
    if (!n)
        return trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for %s", call);
    n->plan = plan;
    n->fd = -1;
    n->ops = plan->ops;
    n->with = *plan->ops;
    n->with.start = start;
    n->with.test = test;
    n->with.wait = wait;
    n->with.busy = busy;
    n->with.destroy = destroy;
    trib_comm_lock(comm);
    plan->notify = n;
    plan->ops = &n->with;
    n->next = comm->notified;
    comm->notified = n;
    comm->run_callbacks = run_callbacks;
    trib_comm_give_way(comm);
    trib_comm_unlock(comm);
    *out = n;
    return TRIB_OK;
}

trib_status_t trib_plan_notify_then(struct trib_plan *plan, void (*then)(void *arg),
                                    void *arg)
{
    struct trib_plan_notify *n;
    const trib_status_t st = notify_of(plan, "a completion callback", &n);

    assert(plan && then);
    if (st != TRIB_OK)
        return st;
    n->then = then;
    n->then_arg = arg;
    return TRIB_OK;
}

trib_status_t trib_plan_notify(trib_plan_t *plan, trib_done_fn fn, void *arg)
{
    if (!plan)
        return TRIB_ERR_INVALID;
    struct trib_plan_notify *n;
    const trib_status_t st = notify_of(plan, "trib_plan_notify", &n);
    if (st != TRIB_OK)
        return st;
    n->call = fn;
    n->arg = arg;
    return TRIB_OK;
}

trib_status_t trib_plan_fd(trib_plan_t *plan, int *fd_out)
{
    if (!plan || !fd_out)
        return TRIB_ERR_INVALID;
    *fd_out = -1;
    struct trib_plan_notify *n;
    const trib_status_t st = notify_of(plan, "trib_plan_fd", &n);
    if (st != TRIB_OK)
        return st;
    if (n->fd < 0)
        n->fd = trib_fd_keep(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (n->fd < 0)
        return trib_comm_fail(plan->comm, TRIB_ERR_SYSTEM,
                              "no descriptor for the plan: %m (raise ulimit -n)");
    *fd_out = n->fd;
    return TRIB_OK;
}
