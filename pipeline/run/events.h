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
 * trib_engine_recall - after a failure, return once no transport write reads the
 * caller's memory, so that the caller may change it.
 *
 * Writes complete within the time of a message, and those that wait in this process are
 * copied. A connection whose writes have not completed within stop_timeout_ms is
 * closed.
 */
void trib_engine_recall(struct trib_engine *e);

/** trib_engine_quiet_by - return the deadline for trib_engine_await_peer: the caller is
 * blocked. */
uint64_t trib_engine_quiet_by(const struct trib_engine *e);

/** trib_engine_await_peer - after trib_engine_recall, wait until no write of a peer to
 * the caller's memory is in flight; return false if one may be. */
bool trib_engine_await_peer(struct trib_engine *e, int peer, uint64_t until);

/** trib_engine_await_quiet - do both for an operation and all its peers; return false
 * also if no peer writes to the caller's memory. */
bool trib_engine_await_quiet(struct trib_engine *e, const struct trib_run *run);

#endif
