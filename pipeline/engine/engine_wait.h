/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the engine does when nothing moves: wait cheaply, look after the peers, and turn
 * what went wrong into a sentence that names rank, host, operation and phase.
 */
#ifndef PIPELINE_ENGINE_ENGINE_WAIT_H
#define PIPELINE_ENGINE_ENGINE_WAIT_H

#include "pipeline/engine/engine.h"

/** trib_engine_events - take the transport's events; true if a frame arrived. */
bool trib_engine_events(struct trib_engine *e);

/** trib_engine_notices - look what peers have to say; one that failed fails this rank. */
void trib_engine_notices(struct trib_engine *e);

/**
 * trib_engine_lost - fail: a peer has died, was stopped or has left; why is a clause.
 *
 * left     it left cleanly, which in the last barrier is its right
 */
void trib_engine_lost(struct trib_engine *e, int peer, bool left, const char *why);

/** trib_engine_tell - tell of a failure the peers to which there is a link; no waiting. */
void trib_engine_tell(struct trib_engine *e, const struct trib_notice *notice);

/**
 * trib_engine_tell_rest - tell those to which there was no link yet, or whose was full.
 *
 * As long as that takes no time: a host that does not answer costs seconds, and the
 * caller waits. Whom it does not reach hears of it from others.
 */
void trib_engine_tell_rest(struct trib_engine *e, const struct trib_notice *notice);

/**
 * trib_engine_compare - does a frame belong to the running operation? As trib_frame_check, with
 * the name of its plan.
 */
trib_status_t trib_engine_compare(const struct trib_engine *e, const struct trib_frame *theirs,
                                  int peer, char *text, size_t bytes);

/** trib_engine_misfit - fail: a frame is none of the running operation, or not the one due. */
void trib_engine_misfit(struct trib_engine *e, const struct trib_frame *theirs, int peer);

/** trib_engine_protocol - fail: a peer sent what does not fit the operation. */
void trib_engine_protocol(struct trib_engine *e, int peer, const char *what);

/** trib_engine_unable - fail: this rank cannot reach a peer's buffer; why is a clause. */
void trib_engine_unable(struct trib_engine *e, int peer, trib_status_t status,
                        const char *why);

#endif
