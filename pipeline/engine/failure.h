/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Failures of the engine: what went wrong becomes a sentence that names rank, host,
 * operation and phase, and a mark on the engine that ends its runs later.
 */
#ifndef PIPELINE_ENGINE_FAILURE_H
#define PIPELINE_ENGINE_FAILURE_H

#include "pipeline/engine/engine_state.h"

/**
 * trib_engine_mark - note that the communicator has failed, and tell the peers with a
 * link.
 *
 * The first failure wins; its sentence goes to e->failure, which any thread may read
 * once it has seen e->failed. It ends no run: a task may be in the middle of one.
 * trib_engine_progress does, and whoever fails the engine from outside of it calls
 * trib_engine_fail (engine.h).
 */
void trib_engine_mark(struct trib_engine *e, trib_status_t status, const char *text);

/** trib_engine_withdraw - tell all peers, before what an engine that has failed has
 * under way ends, that memory which was named to them may change; false: nothing is. */
bool trib_engine_withdraw(struct trib_engine *e);

/**
 * trib_engine_note_lost - note that another rank counts a rank as lost; before
 * trib_engine_mark, if that loss is the cause.
 *
 * lost     the rank plus 1, which may be this one; 0: none
 */
void trib_engine_note_lost(struct trib_engine *e, uint32_t lost);

/**
 * trib_engine_mark_like - mark the engine, because another engine of the same ranks has
 * failed; peers that other has lost are not told.
 */
void trib_engine_mark_like(struct trib_engine *e, const struct trib_engine *other);

/**
 * trib_engine_know_like - take over what another engine of the same ranks knows of lost
 * ranks: that a process has ended, or runs, or has continued the job.
 */
void trib_engine_know_like(struct trib_engine *e, const struct trib_engine *other);

/**
 * trib_engine_compare - check that a frame belongs to the running operation, as
 * trib_frame_check does; the sentence also names the plan.
 */
trib_status_t trib_engine_compare(const struct trib_engine *e,
                                  const struct trib_frame *theirs, int peer, char *text,
                                  size_t bytes);

/** trib_engine_misfit - mark the engine: a frame is another operation's, or not the one
 * that is due. */
void trib_engine_misfit(struct trib_engine *e, const struct trib_frame *theirs,
                        int peer);

/** trib_engine_protocol - mark the engine: a peer sent what does not fit the
 * operation. */
void trib_engine_protocol(struct trib_engine *e, int peer, const char *what);

/** trib_engine_unable - mark the engine: this rank cannot reach a peer's buffer; why is
 * a clause. */
void trib_engine_unable(struct trib_engine *e, int peer, trib_status_t status,
                        const char *why);

/** trib_engine_notice - read the notice of one peer, if there is a new one. */
void trib_engine_notice(struct trib_engine *e, int peer);

/** trib_engine_notices - read the notices of all peers; that of a failure marks this
 * engine. */
void trib_engine_notices(struct trib_engine *e);

/** trib_engine_away - how long this rank itself was stopped or suspended lately, in
 * ns, if others may have given it up meanwhile; else 0. */
uint64_t trib_engine_away(const struct trib_engine *e);

/** trib_engine_maybe_away - the same, now or before the failure, also where the time
 * was so short that a busy host may have been the cause. */
bool trib_engine_maybe_away(const struct trib_engine *e);

/** trib_engine_given_up - a peer counts this rank as lost. trib_engine_lost of it
 * follows. */
void trib_engine_given_up(struct trib_engine *e);

/**
 * trib_engine_lost - mark the engine: a peer has died, was stopped or has left; why is
 * a clause.
 *
 * left     it left cleanly, which in the last barrier is its right
 */
void trib_engine_lost(struct trib_engine *e, int peer, bool left, const char *why);

/** trib_engine_name_rank - write "rank 3 (host a, process 7)". */
void trib_engine_name_rank(const struct trib_engine *e, int rank, char *text,
                           size_t bytes);

/** trib_engine_describe - write the running operation and its phase. */
void trib_engine_describe(const struct trib_engine *e, char *text, size_t bytes);

/** trib_engine_tell - send a notice to one peer if there is a link to it, without
 * waiting. */
void trib_engine_tell(struct trib_engine *e, int peer,
                      const struct trib_oob_notice *notice);

#endif
