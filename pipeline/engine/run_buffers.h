/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The buffers of an operation: this rank's, and those that peers have opened to it.
 */
#ifndef PIPELINE_ENGINE_RUN_BUFFERS_H
#define PIPELINE_ENGINE_RUN_BUFFERS_H

#include "pipeline/engine/engine_state.h"

/** trib_run_open - note which buffers are registered, and what the peers are told of
 * them. */
void trib_run_open(struct trib_engine *e, struct trib_run *run);

/** trib_engine_view - the part of a peer's buffer that this rank reaches; empty if it
 * is out of reach or the engine failed. */
struct trib_view trib_engine_view(struct trib_engine *e, struct trib_link *l,
                                  const struct trib_ref *ref);

#endif
