/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The short path: operations with one round of small raw chunks, where only latency
 * matters.
 *
 * For each task the general engine checks the payload, the round, the reach of memory,
 * the quorum and the checksums. A run for which all of this is known when it is
 * prepared takes this path instead: one pass over its tasks, each of which copies at
 * most TRIB_SMALL_BYTES to or from a slot. Frames, sums and counters are the same as on
 * the general path.
 */
#ifndef PIPELINE_ENGINE_SHORT_PATH_H
#define PIPELINE_ENGINE_SHORT_PATH_H

#include "pipeline/run/engine_state.h"

/**
 * trib_short_prepare - set run->short_path if the run may take this path.
 *
 * run      otherwise prepared, with connected neighbors
 * errors   TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_short_prepare(const struct trib_engine *e, struct trib_run *run);

void trib_short_dispose(struct trib_run *run);

/** trib_short_begin - begin an operation: reset all its tasks. */
void trib_short_begin(struct trib_engine *e, struct trib_run *run);

/**
 * trib_short_pass - run each task that can run now, in order.
 *
 * One pass is enough: a task depends only on earlier ones. Return true if any has run;
 * a failure marks the engine.
 */
bool trib_short_pass(struct trib_engine *e, struct trib_run *run);

/**
 * trib_short_awaits_core - return true if a peer whose frame is missing cannot run
 * until this thread yields the core: it sent its previous frame from this core, or its
 * core is unknown.
 *
 * With more ranks than cores each frame includes the core of its sender. While all
 * missing frames come from other cores, a yield gains nothing: the other ranks of this
 * core wait for the same frames, and two context switches are lost.
 */
bool trib_short_awaits_core(struct trib_engine *e, const struct trib_run *run);

/** trib_short_awaits - return true if the run uses the billboard and waits for a
 * contribution there; *peer_out is the first missing rank. */
bool trib_short_awaits(const struct trib_engine *e, const struct trib_run *run,
                       int *peer_out);

/**
 * trib_short_check - mark the engine if a peer has begun another operation in place of
 * the active one: on a lane while its entry on the billboard is awaited, or on the
 * billboard while its frames are awaited.
 *
 * Call this occasionally while waiting. Other disagreements show at the first frame.
 */
void trib_short_check(struct trib_engine *e);

#endif
