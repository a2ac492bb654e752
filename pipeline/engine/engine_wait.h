/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine while nothing moves: it waits cheaply, and looks after peers and
 * deadlines.
 */
#ifndef PIPELINE_ENGINE_ENGINE_WAIT_H
#define PIPELINE_ENGINE_ENGINE_WAIT_H

#include "pipeline/engine/engine_state.h"

/**
 * trib_engine_look - look after peers, notices and deadlines, without blocking.
 *
 * returns  true: nothing has moved for milliseconds, sleeping is right
 */
bool trib_engine_look(struct trib_engine *e);

/**
 * trib_engine_awaited_ns - the time for which this rank has known that a peer waits for
 * it in an operation that it has not begun; 0 if no peer does.
 *
 * Peers repeat such notices every 100 ms. trib_engine_look reads them.
 */
uint64_t trib_engine_awaited_ns(const struct trib_engine *e);

/** trib_engine_arm - announce a sleep: the caller then looks once more for work, and
 * waits in the transport or calls trib_engine_awake. */
void trib_engine_arm(struct trib_engine *e);

/** trib_engine_awake - note progress: begin to spin anew, and start the deadlines
 * again. */
void trib_engine_awake(struct trib_engine *e);

/**
 * trib_engine_awaits - write for what the active run waits, and of which rank: "a
 * contribution of rank 1 (host a, process 7)"; "" if no run is active.
 *
 * thread   one that holds the owner's lock
 */
void trib_engine_awaits(const struct trib_engine *e, char *text, size_t bytes);

/**
 * trib_engine_awaited_peer - the peer for which the first unfinished task of the active
 * run waits; -1: none, but the caller's data. what_out: "a contribution", and its like
 */
int trib_engine_awaited_peer(const struct trib_engine *e, const char **what_out);

/** trib_engine_wait - make progress until the run is done; returns its status. */
trib_status_t trib_engine_wait(struct trib_engine *e, struct trib_run *run);

/**
 * trib_engine_wait_idle - the same, and call e->give_way between looks: at least every
 * 200 us, as long as a round of tasks takes less.
 *
 * The engine fails with TRIB_ERR_ABORTED if the caller gives up.
 */
trib_status_t trib_engine_wait_idle(struct trib_engine *e, struct trib_run *run);

/**
 * trib_engine_call_abort - have the next trib_engine_look fail the engine with
 * TRIB_ERR_ABORTED.
 *
 * why      a clause for the sentence; "": none. That of the first call counts
 * thread   any, without the owner's lock
 */
void trib_engine_call_abort(struct trib_engine *e, const char *why);

/**
 * trib_engine_give_up - fail the engine, because the caller's idle function says so.
 *
 * operation  what was under way; NULL: the active run
 * returns    TRIB_ERR_ABORTED, or what the engine had failed with before
 */
trib_status_t trib_engine_give_up(struct trib_engine *e, const char *operation);

#endif
