/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small all-reduces of the ranks of one host over the billboard (billboard.h), part of
 * the short path.
 *
 * In an all-reduce in which each rank sends its contribution to all others and sums all
 * itself, the n - 1 frames of a rank say the same. Where all ranks map the arena of
 * rank 0, a rank shows one frame on the billboard there instead, and sums what the
 * others show, in the order of ranks: the same bits. The tasks of its program are not
 * used.
 *
 * All ranks must take the same way. So whether they do follows from what is the same on
 * all of them: what each has said of its arena, the algorithm, the size of the vector.
 * If ranks disagree about the operation, one may wait on the billboard and another on
 * its lanes; both look at the other place now and then (trib_billboard_check).
 */
#ifndef PIPELINE_ENGINE_SHORT_BILLBOARD_H
#define PIPELINE_ENGINE_SHORT_BILLBOARD_H

#include "pipeline/engine/engine_state.h"

struct trib_short_billboard;

/**
 * trib_billboard_prepare - make what the run needs to use the billboard, if it may.
 *
 * run      fits the short path, and its neighbors are connected
 * out      receives NULL if it may not
 * errors   TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_billboard_prepare(const struct trib_engine *e,
                                     const struct trib_run *run,
                                     struct trib_short_billboard **out);

void trib_billboard_dispose(struct trib_short_billboard *b);

/** trib_billboard_begin - begin an operation, and show this rank's contribution. */
void trib_billboard_begin(struct trib_engine *e, struct trib_run *run,
                          struct trib_short_billboard *b);

/** trib_billboard_pass - sum the contributions and end the operation, if all are there;
 * true if so. A failure marks the engine. */
bool trib_billboard_pass(struct trib_engine *e, struct trib_run *run,
                         struct trib_short_billboard *b);

/** trib_billboard_awaits - the first rank, from rank `from` on, whose contribution is
 * missing; -1: none is. */
int trib_billboard_awaits(const struct trib_engine *e,
                          const struct trib_short_billboard *b, int from);

/** trib_billboard_awaits_core - true if one of those ranks was on this core when it
 * showed its last contribution, or has not said where it was. */
bool trib_billboard_awaits_core(const struct trib_engine *e,
                                const struct trib_short_billboard *b);

/**
 * trib_billboard_check - mark the engine if a peer has begun another operation than the
 * active one: with frames while its entry is awaited, or on the billboard while its
 * frames are.
 *
 * b        of the active run; NULL: it does not use the billboard
 */
void trib_billboard_check(struct trib_engine *e, const struct trib_short_billboard *b);

#endif
