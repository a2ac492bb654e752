/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/core/gate.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "comm/core/comm_lock.h"
#include "comm/core/comm_setup.h"
#include "comm/core/communicator.h"

struct trib_gate {
    pthread_mutex_t mutex; /* recursive */
};

trib_status_t trib_gate_make(struct trib_comm *comm)
{
    struct trib_gate *gate = calloc(1, sizeof(*gate));
    pthread_mutexattr_t attr;

    assert(!comm->gate);
    if (!gate)
        return trib_fail(&comm->err, TRIB_ERR_NO_MEMORY, "no memory for a lock");
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&gate->mutex, &attr);
    pthread_mutexattr_destroy(&attr);
    comm->gate = gate;
    trib_comm_lock(comm);
    trib_comm_give_way(comm);
    trib_comm_unlock(comm);
    return TRIB_OK;
}

void trib_gate_free(struct trib_gate *gate)
{
    free(gate); /* no pthread_mutex_destroy: it frees nothing, and a child's may be
                 * locked */
}

void trib_gate_take(struct trib_comm *comm)
{
    enum { TURNS = 100, NAP_NS = 50000 };
    struct trib_gate *gate = comm->gate;

    if (trib_comm_in_child(comm))
        return;
    if (!trib_idle_is_set(comm->idle)) {
        pthread_mutex_lock(&gate->mutex);
        return;
    }
    for (int turns = 0; pthread_mutex_trylock(&gate->mutex) != 0; turns++) {
        (void)trib_idle_call(comm->idle); /* its result ends the call's own wait */
        if (turns < TURNS)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
}

void trib_gate_give(struct trib_comm *comm)
{
    if (!trib_comm_in_child(comm))
        pthread_mutex_unlock(&comm->gate->mutex);
}
