/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the engine does when nothing moves: wait cheaply, look after the peers, and turn
 * what went wrong into a sentence that names rank, host, operation and phase.
 */
#ifndef PIPELINE_WATCH_H
#define PIPELINE_WATCH_H

#include "pipeline/engine.h"

/** trib_watch_events - take the transport's events; true if a frame arrived. */
bool trib_watch_events(struct trib_engine *e);

/** trib_watch_protocol - fail: a peer sent what does not fit the operation. */
void trib_watch_protocol(struct trib_engine *e, const struct trib_run *run, int peer,
                         const char *what);

/** trib_watch_describe - "allreduce (ring), operation 12, phase transfer". */
void trib_watch_describe(const struct trib_engine *e, char *text, size_t bytes);

#endif
