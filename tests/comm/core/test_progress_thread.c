/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The progress thread: it exists from the first start on, and waiting callers drive the
 * engine in its place.
 */
#include <sched.h>
#include <stdatomic.h>

#include "base/time.h"
#include "comm/core/comm_lock.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/core/progress_thread.h"
#include "tests/harness/ranks.h"

static int runs(struct ranks_self *self)
{
    struct trib_progress_thread *t = &self->comm->progress_thread;
    const bool has_thread = self->comm->cfg.progress != TRIB_PROGRESS_CALLER;
    float x[3000] = {0};

    trib_plan_t *plan = ranks_plan(self, TRIB_ALLREDUCE, .recv = x, .count = 3000);
    ranks_assert(self, !t->running);
    for (int i = 0; i < 20; i++) {
        ranks_ok(self, trib_plan_start(plan));
        ranks_assert(self, t->running == has_thread);
        ranks_ok(self, trib_plan_wait(plan));
        ranks_assert(self, atomic_load(&t->callers) == 0);
    }
    atomic_store(&t->active, 1); /* as if it had not noticed that all operations are
                                  * done */
    ranks_ok(self, trib_allreduce(self->comm, x, x, 3000, TRIB_F32, TRIB_SUM));
    ranks_assert(self, !atomic_load(&t->active)); /* it need not poll */
    trib_progress_thread_caller_enter(self->comm);
    ranks_assert(self, atomic_load(&t->callers) == 1);
    trib_progress_thread_caller_leave(self->comm);
    trib_progress_thread_stop(self->comm);
    trib_progress_thread_stop(self->comm); /* a second call does nothing */
    ranks_assert(self, !t->running);
    ranks_ok(self, trib_plan_start(plan));
    ranks_assert(self, t->running == has_thread);
    ranks_ok(self, trib_plan_wait(plan));
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST(test_runs)
{
    ranks_pass(.size = 2, .fn = runs, .config = "progress=thread");
    ranks_pass(.size = 2, .fn = runs, .config = "progress=caller");
}

/* A thread that holds the engine's lock, as the progress thread does. */
struct holder {
    struct trib_comm *comm;
    _Atomic int id; /* its thread; 0: it does not hold the lock yet */
    _Atomic bool pinned; /* it may give the lock back */
};

static void *hold(void *arg)
{
    struct holder *h = arg;

    trib_comm_lock(h->comm);
    atomic_store(&h->id, (int)gettid());
    while (!atomic_load(&h->pinned))
        sched_yield();
    trib_comm_unlock(h->comm);
    return NULL;
}

/* Become a real-time thread on the holder's core; false: without the right to. */
static bool rise_above(struct holder *h)
{
    const struct sched_param first = {.sched_priority = 1};
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (sched_setscheduler(0, SCHED_FIFO, &first))
        return false;
    return sched_setaffinity(0, sizeof(one), &one) == 0 &&
           sched_setaffinity(h->id, sizeof(one), &one) == 0;
}

static int waits_for_lower(struct ranks_self *self)
{
    enum { MOST_MS = 300 };
    const struct sched_param none = {.sched_priority = 0};
    struct holder h = {.comm = self->comm};
    pthread_t holder;
    cpu_set_t before;

    ranks_assert(self, sched_getaffinity(0, sizeof(before), &before) == 0);
    ranks_assert(self, pthread_create(&holder, NULL, hold, &h) == 0);
    while (!atomic_load(&h.id))
        sched_yield();
    const bool above = rise_above(&h);
    const uint64_t began = trib_now_ns();
    atomic_store(&h.pinned, true);
    trib_comm_lock(self->comm);
    const uint64_t ms = (trib_now_ns() - began) / 1000000;
    trib_comm_unlock(self->comm);
    (void)sched_setscheduler(0, SCHED_OTHER, &none);
    (void)sched_setaffinity(0, sizeof(before), &before);
    ranks_assert(self, pthread_join(holder, NULL) == 0);
    ranks_assert(self, !above || ms <= MOST_MS);
    return 0;
}

/* A caller in a real-time class lets the progress thread on its core give the lock
 * back, which yielding would not. */
TEST(test_waits_for_lower)
{
    ranks_pass(.size = 1, .fn = waits_for_lower);
}
