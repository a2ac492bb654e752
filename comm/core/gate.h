/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The gate serializes calls on a communicator that several threads use
 * (trib_opts_t.threads). It guards everything that a call changes outside the engine.
 * No thread waits for a peer while holding the gate, except in trib_split and where
 * creating a plan connects.
 *
 * Lock order: the gate, then the engine's lock. The gate is recursive.
 */
#ifndef COMM_CORE_GATE_H
#define COMM_CORE_GATE_H

#include "comm/core/call_cache.h"
#include "comm/core/communicator.h"

/** trib_gate_make - allow several threads to use a wired-up communicator;
 * TRIB_ERR_NO_MEMORY with a message in comm->err. */
trib_status_t trib_gate_make(struct trib_comm *comm);

/** trib_gate_free - free the gate, even in a forked child; NULL is allowed. */
void trib_gate_free(struct trib_gate *gate);

/* Acquire and release the gate; the caller's idle callback runs during the wait. No-ops
 * in a forked child, whose copy may be locked. */
void trib_gate_take(struct trib_comm *comm);
void trib_gate_give(struct trib_comm *comm);

/** trib_gate_enter, trib_gate_leave - acquire and release the gate, if there is one. */
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

/* A blocking call and the plan it needs. */
struct trib_call {
    struct trib_plan_key key;
    bool own; /* to be run by the communicator's own engine */
    const size_t *counts; /* its arrays of `bytes` bytes, part of the key; or NULL */
    size_t bytes;
    const trib_desc_t *desc; /* of a call with counts */
    trib_status_t (*make)(struct trib_comm *comm, const struct trib_call *call,
                          struct trib_plan **plan_out); /* creates its plan */
};

/** trib_call_shared - run a blocking call of one of several threads, on a plan that no
 * other thread uses at the same time. */
trib_status_t trib_call_shared(struct trib_comm *comm, const struct trib_call *call,
                               const void *send, void *recv);

#endif
