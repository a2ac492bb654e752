/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Failures of the engine. A failure produces an error message with rank, host,
 * operation and phase, and marks the engine, which ends its runs later.
 */
#ifndef PIPELINE_RUN_FAILURE_H
#define PIPELINE_RUN_FAILURE_H

#include "pipeline/run/engine_state.h"

/**
 * trib_engine_mark - mark the communicator as failed and notify the peers with a link.
 *
 * The first failure wins; its message is stored in e->failure, which any thread may
 * read after it has seen e->failed. No run ends here, because a task may be executing:
 * trib_engine_progress ends them. Code outside trib_engine_progress calls
 * trib_engine_fail (engine.h).
 */
void trib_engine_mark(struct trib_engine *e, trib_status_t status, const char *text);

/** trib_engine_withdraw - tell all peers that memory advertised to them may change,
 * before a failed engine ends its runs; return false if nothing was in progress. */
bool trib_engine_withdraw(struct trib_engine *e);

/**
 * trib_engine_note_lost - note that another rank counts a rank as lost. If that loss is
 * the cause, call this before trib_engine_mark.
 *
 * lost     the rank plus 1, which may be this rank; 0: none
 */
void trib_engine_note_lost(struct trib_engine *e, uint32_t lost);

/**
 * trib_engine_mark_like - mark the engine because another engine of the same ranks has
 * failed; do not notify peers that the other engine has lost.
 */
void trib_engine_mark_like(struct trib_engine *e, const struct trib_engine *other);

/**
 * trib_engine_know_like - copy the facts about lost ranks from another engine of the
 * same ranks: a process has ended, or still runs, or has continued the job.
 */
void trib_engine_know_like(struct trib_engine *e, const struct trib_engine *other);

/** trib_engine_misfit - mark the engine: a frame belongs to another operation, or is
 * out of order. */
void trib_engine_misfit(struct trib_engine *e, const struct trib_frame *theirs,
                        int peer);

/** trib_engine_protocol - mark the engine: a peer sent something invalid for the
 * operation. */
void trib_engine_protocol(struct trib_engine *e, int peer, const char *what);

/** trib_engine_unable - mark the engine: this rank cannot reach a peer's buffer; why is
 * a clause. */
void trib_engine_unable(struct trib_engine *e, int peer, trib_status_t status,
                        const char *why);

/** trib_engine_notice - read the notice of one peer, if there is a new one. */
void trib_engine_notice(struct trib_engine *e, int peer);

/** trib_engine_notices - read the notices of all peers; an abort notice marks this
 * engine. */
void trib_engine_notices(struct trib_engine *e);

/** trib_engine_away - return how long this rank itself was recently stopped or
 * suspended, in ns, if others may have declared it lost meanwhile; else 0. */
uint64_t trib_engine_away(const struct trib_engine *e);

/** trib_engine_maybe_away - return true if this rank is or was away before the failure,
 * even for times so short that a busy host may be the cause. */
bool trib_engine_maybe_away(const struct trib_engine *e);

/** trib_engine_given_up - note that a peer counts this rank as lost. A call of
 * trib_engine_lost for that peer follows. */
void trib_engine_given_up(struct trib_engine *e);

/**
 * trib_engine_lost - mark the engine: a peer has died, was stopped or has disconnected;
 * why is a clause.
 *
 * left     the peer disconnected cleanly, as it may in the last barrier
 */
void trib_engine_lost(struct trib_engine *e, int peer, bool left, const char *why);

/** trib_engine_name_rank - write "rank 3 (host a, process 7)". */
void trib_engine_name_rank(const struct trib_engine *e, int rank, char *text,
                           size_t bytes);

/** trib_engine_describe - write the running operation and its phase. */
void trib_engine_describe(const struct trib_engine *e, char *text, size_t bytes);

/** trib_engine_notify - send a notice to one peer if there is a link, without
 * waiting. */
void trib_engine_notify(struct trib_engine *e, int peer,
                        const struct trib_oob_notice *notice);

#endif
