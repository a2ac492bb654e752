/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/client/offload_gate.h"

#include <assert.h>
#include <sched.h>
#include <time.h>

#include "base/wait.h"
#include "comm/core/comm_lock.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"

void trib_offload_gate_make(struct trib_offload *o)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&o->gate, &attr);
    pthread_mutexattr_destroy(&attr);
}

/* Drive the parent's engine once, unless another thread does. */
static void drive(struct trib_comm *parent)
{
    if (!trib_comm_try_lock(parent))
        return;
    trib_engine_drive(&parent->engine);
    trib_comm_unlock(parent);
}

void trib_offload_gate_enter(struct trib_offload *o)
{
    enum { TURNS = 100, NAP_NS = 50000 };

    if (trib_comm_in_child(o->parent))
        return;
    for (int turns = 0; pthread_mutex_trylock(&o->gate) != 0; turns++) {
        (void)trib_idle_call(o->parent->idle); /* the wait itself checks its result */
        drive(o->parent);
        if (turns < TURNS)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
}

bool trib_offload_gate_try(struct trib_offload *o)
{
    assert(!trib_comm_in_child(o->parent));
    return pthread_mutex_trylock(&o->gate) == 0;
}

void trib_offload_gate_leave(struct trib_offload *o)
{
    if (!trib_comm_in_child(o->parent))
        pthread_mutex_unlock(&o->gate);
}

void trib_offload_wait_outside(struct trib_offload *o, struct trib_plan *plan)
{
    assert(plan && plan->comm != o->parent);
    atomic_fetch_add(&o->waits, 1);
    trib_offload_gate_leave(o);
    (void)plan->ops->wait(plan);
    atomic_fetch_sub(&o->waits, 1);
    trib_offload_gate_enter(o);
}

void trib_offload_await_none(struct trib_offload *o)
{
    for (unsigned turn = 1; atomic_load(&o->waits) > 0; turn++)
        trib_wait_turn(turn, TRIB_WAIT_YIELDS);
}
