/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock of a communicator's engine.
 */
#ifndef COMM_CORE_COMM_LOCK_H
#define COMM_CORE_COMM_LOCK_H

#include "base/fpenv.h"
#include "comm/core/communicator.h"

/* Block until the progress thread ends its pass or a waiting thread yields the lock. */
void trib_comm_lock_slow(struct trib_comm *comm);

/* The lock's holder computes in the default floating-point modes, so all ranks get the
 * same bits whatever thread runs the engine: base/fpenv.h. */
static inline void trib_comm_lock(struct trib_comm *comm)
{
    if (atomic_exchange_explicit(&comm->lock, 1, memory_order_acquire))
        trib_comm_lock_slow(comm);
    comm->fp_modes = trib_fpenv_enter();
}

static inline bool trib_comm_try_lock(struct trib_comm *comm)
{
    if (atomic_exchange_explicit(&comm->lock, 1, memory_order_acquire))
        return false;
    comm->fp_modes = trib_fpenv_enter();
    return true;
}

static inline void trib_comm_unlock(struct trib_comm *comm)
{
    const uint64_t modes = comm->fp_modes;

    atomic_store_explicit(&comm->lock, 0, memory_order_release);
    trib_fpenv_leave(modes);
}

/** trib_comm_poll - make progress for ranks waiting on another communicator:
 * comm/core/plan_ops.h. */
static inline void trib_comm_poll(struct trib_comm *comm)
{
    if (comm->hooks)
        comm->hooks->poll(comm);
}

#endif
