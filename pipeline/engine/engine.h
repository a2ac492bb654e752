/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine: runs any schedule over any transport with any codec.
 *
 * Operations of one engine run one after the other, in the order of their starts. The
 * engine has no lock: comm/ ensures that one thread at a time calls it, except for
 * trib_run_feed.
 */
#ifndef PIPELINE_ENGINE_ENGINE_H
#define PIPELINE_ENGINE_ENGINE_H

#include "pipeline/engine/engine_wait.h"
#include "pipeline/run/engine_page.h"
#include "pipeline/run/engine_state.h"
#include "pipeline/run/events.h"
#include "pipeline/run/failure.h"
#include "pipeline/run/run_buffers.h"

/**
 * trib_engine_open - create the engine and its arena. The caller fills peers[] before
 * the first run.
 *
 * The caller sets cfg, log, err, kernels, transport, rank, size and arena.per_link of
 * e.
 */
trib_status_t trib_engine_open(struct trib_engine *e);

/**
 * trib_engine_part - end all transfers with peers after a failure: this rank no longer
 * writes to them, and they no longer write here.
 *
 * For callers that free memory which a write in flight may still use.
 */
void trib_engine_part(struct trib_engine *e);

/** trib_engine_close - disconnect all links and free the engine; no run may be
 * queued. */
void trib_engine_close(struct trib_engine *e);

/**
 * trib_engine_connect - connect the link to a peer, if it is not connected.
 *
 * Runs call this for their neighbors. One call at the start reveals configuration
 * errors early.
 * operation  name of the operation that needs the link, for the error message
 * errors     of connecting; the communicator has then failed
 */
trib_status_t trib_engine_connect(struct trib_engine *e, int peer,
                                  const char *operation);

/** trib_engine_connect_many - connect in parallel to each peer p < n with which[p] that
 * is not connected. trib_engine_connect then sets up the link, or returns the error. */
void trib_engine_connect_many(struct trib_engine *e, const bool *which, int n);

/** trib_engine_reach - as trib_engine_connect, without slots for the frames of runs. */
trib_status_t trib_engine_reach(struct trib_engine *e, int peer, const char *operation);

/** trib_engine_link - as trib_engine_connect, but a failure only sets the error message
 * in e->err. */
trib_status_t trib_engine_link(struct trib_engine *e, int peer);

/**
 * trib_run_prepare - connect the neighbors of run->program and allocate the memory that
 * run->desc requires.
 *
 * run      zero except desc, program and name
 * errors   TRIB_ERR_NO_MEMORY, and errors of connecting
 */
trib_status_t trib_run_prepare(struct trib_engine *e, struct trib_run *run);

/**
 * trib_run_bytes - return an upper bound, slightly high, of the bytes that
 * trib_run_prepare allocates for an aggregator's run.
 *
 * run          as for trib_run_prepare
 * results_out  growth of the memory that remains after the run is freed
 *              (trib_agg_results)
 */
uint64_t trib_run_bytes(const struct trib_engine *e, const struct trib_run *run,
                        uint64_t *results_out);

/** trib_run_dispose - free the program and the memory of trib_run_prepare. */
void trib_run_dispose(struct trib_run *run);

/** trib_run_start - queue the run; in place if send == recv or send is NULL. */
void trib_run_start(struct trib_engine *e, struct trib_run *run, const void *send,
                    void *recv);

/**
 * trib_run_feed - declare elements [first, first + count) of the input final.
 *
 * thread   any, also while another thread drives the engine
 * returns  false if some were not awaited: they were already final, or no operation was
 *          started; nothing has changed
 */
bool trib_run_feed(struct trib_run *run, size_t first, size_t count);

/**
 * trib_engine_progress - do everything that can be done now; never blocks.
 *
 * returns  true if anything moved
 */
bool trib_engine_progress(struct trib_engine *e);

/**
 * trib_engine_fail - fail the communicator: notify all peers, end all runs.
 *
 * For callers outside trib_engine_progress. Code within it calls trib_engine_mark.
 */
void trib_engine_fail(struct trib_engine *e, trib_status_t status, const char *text);

/** trib_engine_end_leaving - complete the active run, a final barrier, without the
 * messages that it still waits for. */
void trib_engine_end_leaving(struct trib_engine *e);

/**
 * trib_engine_end - after a failure, end all runs and notify the peers that do not know
 * of it.
 *
 * Only this function ends runs after a failure. Does nothing unless the engine has
 * failed.
 * returns  true if it ended a run
 */
bool trib_engine_end(struct trib_engine *e);

#endif
