/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The gate of an offload: one thread enters, and may enter again. Threads that want to
 * enter drive the engine of the parent. Threads that wait outside are awaited.
 */
#include "tests/agg/client/aggregators.h"

#include "agg/client/offload_gate.h"
#include "comm/plan/plan_make.h"

struct visitor {
    struct trib_offload *o;
    struct trib_plan *plan;
    _Atomic bool has_tried, entered;
    bool tried; /* result of the try */
};

static void *visit(void *arg)
{
    struct visitor *v = arg;

    v->tried = trib_offload_gate_try(v->o);
    v->has_tried = true;
    trib_offload_gate_enter(v->o);
    v->entered = true;
    trib_offload_gate_leave(v->o);
    return NULL;
}

static void *wait_outside(void *arg)
{
    struct visitor *v = arg;

    trib_offload_gate_enter(v->o);
    v->entered = true;
    trib_offload_wait_outside(v->o, v->plan);
    trib_offload_gate_leave(v->o);
    return NULL;
}

/* Another thread cannot enter until this one has left as often as it entered. */
static void one_within(struct ranks_self *self, struct trib_offload *o)
{
    struct visitor v = {.o = o};
    pthread_t thread;

    trib_offload_gate_enter(o);
    ranks_assert(self, trib_offload_gate_try(o));
    ranks_assert(self, pthread_create(&thread, NULL, visit, &v) == 0);
    while (!v.has_tried)
        sched_yield();
    usleep(20000); /* it must not enter in this time */
    ranks_assert(self, !v.entered);
    trib_offload_gate_leave(o);
    usleep(20000);
    ranks_assert(self, !v.entered);
    trib_offload_gate_leave(o);
    ranks_assert(self, pthread_join(thread, NULL) == 0);
    ranks_assert(self, v.entered && !v.tried);
}

/* Rank 1 calls a barrier of the parent late. A thread of rank 0 that wants to enter
 * completes it, because nothing else drives the engine there. */
static void drives_parent(struct ranks_self *self, struct trib_comm *parent)
{
    struct visitor v = {.o = parent->offload};
    pthread_t thread;

    trib_plan_t *plan = ranks_plan_on(self, parent, TRIB_BARRIER, .dtype = TRIB_I8);
    ranks_ok(self, trib_barrier(parent));
    usleep(self->rank ? 50000 : 0);
    ranks_ok(self, trib_plan_start(plan));
    if (self->rank == 0) {
        trib_offload_gate_enter(v.o);
        ranks_assert(self, pthread_create(&thread, NULL, visit, &v) == 0);
        while (atomic_load(&plan->run.now.state) != TRIB_RUN_DONE)
            usleep(1000);
        trib_offload_gate_leave(v.o);
        ranks_assert(self, pthread_join(thread, NULL) == 0);
    }
    ranks_ok(self, trib_plan_wait(plan));
    ranks_ok(self, trib_plan_free(plan));
}

/* A thread that waits outside is awaited. */
static void awaited(struct ranks_self *self, struct trib_comm *parent)
{
    struct trib_offload *o = parent->offload;
    struct visitor v = {.o = o};
    pthread_t thread;
    trib_desc_t d = sized(trib_desc_t, .dtype = TRIB_I8);

    ranks_ok(self, trib_plan_make(o->fallback_comm, TRIB_BARRIER, &d, false, &v.plan));
    ranks_ok(self, trib_barrier(parent));
    usleep(self->rank ? 50000 : 0);
    ranks_ok(self, trib_plan_start(v.plan));
    ranks_assert(self, pthread_create(&thread, NULL, wait_outside, &v) == 0);
    while (!v.entered)
        sched_yield();
    trib_offload_gate_enter(o); /* the thread is outside */
    trib_offload_await_none(o);
    ranks_assert(self, trib_offload_inner_succeeded(v.plan));
    trib_offload_gate_leave(o);
    ranks_assert(self, pthread_join(thread, NULL) == 0);
    trib_plan_destroy(v.plan);
}

static int gate(struct ranks_self *self)
{
    struct aggregators *a = self->arg;
    struct trib_comm *parent = aggregators_attach(self, a);

    if (!parent)
        return 0;
    one_within(self, parent->offload);
    drives_parent(self, parent);
    awaited(self, parent);
    aggregators_leave(self, a, parent);
    return 0;
}

TEST_ON(test_gate, "shm;progress=caller", "tcp")
{
    struct aggregators a = {.ranks = 2, .n = 1};

    assert_true(aggregators_open(&a));
    ranks_pass(.size = a.ranks + a.n, .fn = gate, .arg = &a, .config = *state);
    aggregators_close(&a);
}
