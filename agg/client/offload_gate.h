/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The gate of an offload: the lock of its state outside of engines. It is held by
 * public calls, on any thread, and by the parent's progress thread when it checks which
 * plans have ended.
 *
 * A thread that waits for a start does so outside and is counted in o->waits, so that a
 * recovery does not free the plan. A thread may wait for other ranks within the gate,
 * for example in a recovery. Threads that want to enter then drive the parent's engine,
 * because a peer may need it before it reaches the same agreement.
 *
 * Order of locks: the parent's gate (comm/core/gate.h), this gate, engines.
 */
#ifndef AGG_CLIENT_OFFLOAD_GATE_H
#define AGG_CLIENT_OFFLOAD_GATE_H

#include "agg/client/fallback.h"

void trib_offload_gate_make(struct trib_offload *o);

/** trib_offload_gate_enter - wait for the gate and enter it. A thread may enter twice.
 * Does nothing in a forked child, whose copy of the mutex may be locked. */
void trib_offload_gate_enter(struct trib_offload *o);

/** trib_offload_gate_try - enter without waiting; false: another thread is inside. */
bool trib_offload_gate_try(struct trib_offload *o);
void trib_offload_gate_leave(struct trib_offload *o);

/** trib_offload_wait_outside - leave the gate, wait for an inner plan or a barrier, and
 * enter again. The caller must have entered exactly once. */
void trib_offload_wait_outside(struct trib_offload *o, struct trib_plan *plan);

/** trib_offload_await_none - wait until no thread is in trib_offload_wait_outside. The
 * communicator of their plans must have failed. */
void trib_offload_await_none(struct trib_offload *o);

#endif
