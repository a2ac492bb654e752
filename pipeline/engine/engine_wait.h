/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine while nothing moves: it waits cheaply, and checks peers and deadlines.
 */
#ifndef PIPELINE_ENGINE_ENGINE_WAIT_H
#define PIPELINE_ENGINE_ENGINE_WAIT_H

#include "pipeline/run/engine_state.h"

/**
 * trib_engine_check - check peers, notices and deadlines without blocking.
 *
 * returns  true if nothing has moved for milliseconds, so the caller should sleep
 */
bool trib_engine_check(struct trib_engine *e);

/**
 * trib_engine_awaited_ns - return how long this rank has known that a peer waits in an
 * operation that this rank has not begun; 0 if no peer does.
 *
 * Peers repeat such notices every 100 ms. trib_engine_check reads them.
 */
uint64_t trib_engine_awaited_ns(const struct trib_engine *e);

/** trib_engine_arm - announce a sleep. The caller then checks once more for work, and
 * either waits in the transport or calls trib_engine_awake. */
void trib_engine_arm(struct trib_engine *e);

/** trib_engine_awake - note progress: restart spinning and the deadlines. */
void trib_engine_awake(struct trib_engine *e);

/** trib_engine_drive - make progress once, or check the peers if there is none. */
void trib_engine_drive(struct trib_engine *e);

/**
 * trib_engine_awaits - write the event and the rank that the active run waits for: "a
 * contribution of rank 1 (host a, process 7)"; "" if no run is active.
 *
 * thread   the holder of the owner's lock
 */
void trib_engine_awaits(const struct trib_engine *e, char *text, size_t bytes);

/** trib_engine_wait - make progress until the run is done; return its status. */
trib_status_t trib_engine_wait(struct trib_engine *e, struct trib_run *run);

/**
 * trib_engine_wait_idle - as trib_engine_wait, and call e->give_way between polls, at
 * least every 200 us if a round of tasks takes less.
 *
 * The engine fails with TRIB_ERR_ABORTED if the caller gives up.
 */
trib_status_t trib_engine_wait_idle(struct trib_engine *e, struct trib_run *run);

/**
 * trib_engine_call_abort - make the next trib_engine_check fail the engine with
 * TRIB_ERR_ABORTED.
 *
 * why      a clause for the error message; "": none. The first call's clause is used
 * thread   any, without the owner's lock
 */
void trib_engine_call_abort(struct trib_engine *e, const char *why);

/**
 * trib_engine_give_up - fail the engine because the caller's idle function requests it.
 *
 * operation  name of the interrupted operation; NULL: the active run
 * returns    TRIB_ERR_ABORTED, or the status of an earlier failure
 */
trib_status_t trib_engine_give_up(struct trib_engine *e, const char *operation);

#endif
