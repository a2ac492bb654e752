/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine: runs any schedule over any transport with any codec.
 *
 * Operations of one engine run one after the other, in the order of their starts. It is
 * not locked: comm/ sees to it that one thread at a time calls it; the one exception is
 * trib_run_feed.
 */
#ifndef PIPELINE_ENGINE_ENGINE_H
#define PIPELINE_ENGINE_ENGINE_H

#include "pipeline/engine/events.h"
#include "pipeline/engine/engine_page.h"
#include "pipeline/engine/failure.h"
#include "pipeline/engine/engine_state.h"
#include "pipeline/engine/run_buffers.h"
#include "pipeline/engine/engine_wait.h"

/**
 * trib_engine_open - make the arena; peers[] is filled by the caller before a run.
 *
 * Sets up e from its cfg, log, err, kernels, transport, rank, size, arena.per_link.
 */
trib_status_t trib_engine_open(struct trib_engine *e);

/**
 * trib_engine_part - after a failure, end all transfers with peers: this rank writes to
 * none of them, and none writes here.
 *
 * For who gives memory back that a write may still be under way from or to.
 */
void trib_engine_part(struct trib_engine *e);

/** trib_engine_close - leave all links; no run may be queued. */
void trib_engine_close(struct trib_engine *e);

/**
 * trib_engine_connect - bring up the link to a peer, if it is not up.
 *
 * Runs do it for their neighbors. One at the start, so that what is wrong shows there.
 * operation  who needs it, for the sentence
 * errors   those of connecting; the communicator has then failed
 */
trib_status_t trib_engine_connect(struct trib_engine *e, int peer,
                                  const char *operation);

/** trib_engine_reach - as trib_engine_connect, without slots for the frames of runs. */
trib_status_t trib_engine_reach(struct trib_engine *e, int peer, const char *operation);

/** trib_engine_link - as trib_engine_connect, but a failure only leaves its sentence in
 * e->err. */
trib_status_t trib_engine_link(struct trib_engine *e, int peer);

/**
 * trib_run_prepare - connect the neighbors of run->program and allocate what run->desc
 * wants.
 *
 * run      zero but for desc, program and name
 * errors   TRIB_ERR_NO_MEMORY, and what connecting gives
 */
trib_status_t trib_run_prepare(struct trib_engine *e, struct trib_run *run);

/**
 * trib_run_bytes - the bytes that trib_run_prepare will allocate for an aggregator's
 * run, or a little more.
 *
 * run         as trib_run_prepare takes it
 * results_out  what memories grow by that stay when the run is gone (trib_agg_results)
 */
uint64_t trib_run_bytes(const struct trib_engine *e, const struct trib_run *run,
                        uint64_t *results_out);

/** trib_run_dispose - free the program and what trib_run_prepare allocated. */
void trib_run_dispose(struct trib_run *run);

/** trib_run_start - queue the run; send == recv or NULL means in place. */
void trib_run_start(struct trib_engine *e, struct trib_run *run, const void *send,
                    void *recv);

/**
 * trib_run_feed - elements [first, first + count) of the input are final.
 *
 * thread   any, also while another drives the engine
 * returns  false: some are not awaited, because they were final before or because
 *          nothing was started; nothing has changed
 */
bool trib_run_feed(struct trib_run *run, size_t first, size_t count);

/**
 * trib_engine_progress - do what can be done now; never blocks.
 *
 * returns  true if anything moved
 */
bool trib_engine_progress(struct trib_engine *e);

/**
 * trib_engine_fail - the communicator has failed: tell all peers, end all runs.
 *
 * For callers outside of trib_engine_progress; what a run meets calls trib_engine_mark.
 */
void trib_engine_fail(struct trib_engine *e, trib_status_t status, const char *text);

/**
 * trib_engine_end - after a failure: end all runs, and tell the peers that do not know
 * of it.
 *
 * The one place where a failure ends runs; nothing happens unless the engine has
 * failed.
 * returns  true if it ended any
 */
bool trib_engine_end(struct trib_engine *e);

#endif
