/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The short path: an operation of one round of small raw chunks, where latency is all
 * that counts.
 *
 * The general engine asks at each task which payload, which round, whether memory is
 * within reach, whether a quorum or a checksum is wanted. A run whose answers are known
 * when it is prepared takes this path instead: one pass over its tasks, each of which
 * copies at most TRIB_SMALL_BYTES to or from a slot. Frames, sums and counters are
 * those of the general path.
 */
#ifndef PIPELINE_ENGINE_SHORT_PATH_H
#define PIPELINE_ENGINE_SHORT_PATH_H

#include "pipeline/engine/engine_state.h"

/**
 * trib_short_prepare - set run->short_path if the run may take this path.
 *
 * run      all else of it is prepared, and its neighbors are connected
 * errors   TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_short_prepare(const struct trib_engine *e, struct trib_run *run);

void trib_short_dispose(struct trib_run *run);

/** trib_short_begin - begin an operation: no task of it is done. */
void trib_short_begin(struct trib_engine *e, struct trib_run *run);

/**
 * trib_short_pass - run each task that can run now, in order.
 *
 * One pass is enough: a task depends on earlier ones only. Returns true if any has run;
 * a failure marks the engine.
 */
bool trib_short_pass(struct trib_engine *e, struct trib_run *run);

/**
 * trib_short_awaits_core - true if a peer whose frame has not come cannot run before
 * this thread gives it the core: it sent its last frame from here, or did not say.
 *
 * With more ranks than cores each frame says on which core its sender runs. While all
 * that is missing comes from other cores, to give this one away earns nothing: who
 * waits on it waits for the same frames, and two switches are lost.
 */
bool trib_short_awaits_core(struct trib_engine *e, const struct trib_run *run);

/** trib_short_awaits - true if the run goes over the billboard and waits for a
 * contribution there; *peer_out is the first rank whose is missing. */
bool trib_short_awaits(const struct trib_engine *e, const struct trib_run *run,
                       int *peer_out);

/**
 * trib_short_check - mark the engine if a peer has begun another operation in place of
 * the active one, and uses a lane where its entry on the billboard is awaited, or the
 * billboard where its frames are.
 *
 * For who waits, now and then: other disagreements show at the first frame.
 */
void trib_short_check(struct trib_engine *e);

#endif
