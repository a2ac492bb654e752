/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The gate of an offload: the lock of what its calls change outside of engines. The
 * public calls enter it, whatever thread they are on; so does the progress thread of
 * the parent, when it looks for plans whose end is to be told.
 *
 * A thread that waits for a start is outside, and counts in o->waits, so that no
 * recovery frees the plan for which it waits. Where a thread waits for other ranks
 * within the gate, as a recovery does, those that want to enter drive the parent's
 * engine: a peer may need it before it comes to the same agreement.
 *
 * Locks are taken in this order: the parent's gate (comm/gate.h), this one, engines.
 */
#ifndef OFFLOAD_OFFLOAD_GATE_H
#define OFFLOAD_OFFLOAD_GATE_H

#include "offload/fallback.h"

void trib_offload_gate_make(struct trib_offload *o);

/** trib_offload_gate_enter - be the only thread within the gate; a thread may enter it
 * once more. In a forked child, whose copy may be shut, nothing. */
void trib_offload_gate_enter(struct trib_offload *o);

/** trib_offload_gate_try - the same without waiting; false: another thread is
 * within. */
bool trib_offload_gate_try(struct trib_offload *o);
void trib_offload_gate_leave(struct trib_offload *o);

/** trib_offload_wait_outside - wait for the start of an inner plan, or of a barrier,
 * outside of the gate, in which the caller is once. */
void trib_offload_wait_outside(struct trib_offload *o, struct trib_plan *plan);

/** trib_offload_await_none - wait until no thread is in such a wait. Their communicator
 * has failed. */
void trib_offload_await_none(struct trib_offload *o);

#endif
