/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of the transport: arrived frames and lost peers.
 */
#ifndef PIPELINE_RUN_EVENTS_H
#define PIPELINE_RUN_EVENTS_H

#include "pipeline/run/engine_state.h"

/** trib_engine_events - handle the transport's events; return true if a frame
 * arrived. */
bool trib_engine_events(struct trib_engine *e);

/**
 * trib_engine_notify_failure - notify the peers that do not know of a failure: those
 * without a link, and those whose transport was full.
 *
 * Takes up to some 100 ms, or longer if it must first connect to a peer. The caller is
 * blocked, and a host that does not answer costs seconds, so the function stops at a
 * deadline. Peers not reached learn of the failure from others. The engine calls this
 * at the end of its runs unless e->notifies_later, in which case its owner calls it
 * later.
 */
void trib_engine_notify_failure(struct trib_engine *e);

/**
 * trib_engine_await_quiet - after a failure, return once no transport write reads the
 * caller's memory, so that the caller may change it. If peers write to the caller's
 * memory, also wait until none of these writes is in flight.
 *
 * Writes complete within the time of a message, and those that wait in this process are
 * copied. A connection whose writes have not completed within stop_timeout_ms is
 * closed.
 *
 * returns  false: writes of peers may be in flight, without such memory or after a
 *          deadline as above
 */
bool trib_engine_await_quiet(struct trib_engine *e, const struct trib_run *run);

#endif
