/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of the transport: frames that arrived, and peers that are lost.
 */
#ifndef PIPELINE_ENGINE_EVENTS_H
#define PIPELINE_ENGINE_EVENTS_H

#include "pipeline/engine/engine_state.h"

/** trib_engine_events - take the transport's events; returns true if a frame
 * arrived. */
bool trib_engine_events(struct trib_engine *e);

/**
 * trib_engine_tell_failure - tell a failure to the peers that do not know it: those
 * without a link, and those whose transport was full.
 *
 * May take some 100 ms, and longer where such a peer must be connected to first. It
 * goes on as long as that takes no time: a host that does not answer costs seconds, and
 * the caller waits. A peer that is not reached hears of it from others. The engine does
 * it at the end of its runs; where it tells later (e->tells_later), its owner does,
 * elsewhere.
 */
void trib_engine_tell_failure(struct trib_engine *e);

#endif
