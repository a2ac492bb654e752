/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The gate of a communicator that several threads use at once
 * (trib_opts_t.threads): what a call changes outside of the engine it changes within
 * the gate. A thread never waits for a peer within it, save in trib_split and where the
 * making of a plan connects.
 *
 * Locks are taken in this order: the gate, the engine's. A thread that has the gate may
 * enter it once more.
 */
#ifndef COMM_GATE_H
#define COMM_GATE_H

#include "comm/communicator.h"

/** trib_gate_make - from now on several threads use the communicator, which is wired
 * up; TRIB_ERR_NO_MEMORY with a sentence in comm->err. */
trib_status_t trib_gate_make(struct trib_comm *comm);

/** trib_gate_free - free the gate, in a forked child, too; NULL is allowed. */
void trib_gate_free(struct trib_gate *gate);

/* Wait for the gate, and call the caller's idle function meanwhile. In a forked child,
 * whose copy may be shut, these do nothing. */
void trib_gate_take(struct trib_comm *comm);
void trib_gate_give(struct trib_comm *comm);

/** trib_gate_enter, trib_gate_leave - be the only thread within the gate; nothing where
 * there is none. */
static inline void trib_gate_enter(struct trib_comm *comm)
{
    if (comm->gate)
        trib_gate_take(comm);
}

static inline void trib_gate_leave(struct trib_comm *comm)
{
    if (comm->gate)
        trib_gate_give(comm);
}

/* A blocking call, for the plan that it needs. */
struct trib_call {
    struct trib_plan_key key;
    bool own; /* the communicator's own engine is to run it */
    const size_t *counts; /* its arrays, `bytes` of them, by which it is found again; or
                           * NULL */
    size_t bytes;
    const trib_desc_t *desc; /* of a call with counts, */
    trib_status_t (*make)(struct trib_comm *comm, const struct trib_call *call,
                          struct trib_plan **plan_out); /* and how its plan is made */
};

/** trib_call_shared - a blocking call of one of several threads: it has a plan that no
 * other thread uses meanwhile. */
trib_status_t trib_call_shared(struct trib_comm *comm, const struct trib_call *call,
                               const void *send, void *recv);

#endif
