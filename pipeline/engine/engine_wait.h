/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine while nothing moves: it waits cheaply, and looks after peers and
 * deadlines.
 */
#ifndef PIPELINE_ENGINE_ENGINE_WAIT_H
#define PIPELINE_ENGINE_ENGINE_WAIT_H

#include "pipeline/engine/engine_state.h"

/**
 * trib_engine_look - look after peers, notices and deadlines; never blocks.
 *
 * returns  true: nothing has moved for milliseconds, sleeping is right
 */
bool trib_engine_look(struct trib_engine *e);

/**
 * trib_engine_awaited_ns - how long this rank has known that a peer waits for it in an
 * operation that this rank has not begun; 0 if no peer does.
 *
 * Peers repeat such notices every 100 ms. trib_engine_look reads them.
 */
uint64_t trib_engine_awaited_ns(const struct trib_engine *e);

/** trib_engine_awake - something moved: begin to spin anew, deadlines start again. */
void trib_engine_awake(struct trib_engine *e);

/** trib_engine_wait - progress until the run is done; its status. */
trib_status_t trib_engine_wait(struct trib_engine *e, struct trib_run *run);

#endif
