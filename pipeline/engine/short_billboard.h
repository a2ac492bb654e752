/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small all-reduces among the ranks of one host over the billboard (billboard.h); part
 * of the short path.
 *
 * If each rank of an all-reduce sends its contribution to all others and computes the
 * sum itself, its n - 1 frames are equal. If all ranks map the arena of rank 0, a rank
 * instead publishes one frame on the billboard there. It then sums the frames of the
 * others in rank order, which gives the same bits. The tasks of its program are not
 * used.
 *
 * All ranks must make the same choice, so it depends only on data that is equal on all
 * of them: the description of each arena, the algorithm, and the size of the vector. If
 * ranks disagree about the operation, one may wait on the billboard and another on its
 * lanes. Both occasionally check the other place (trib_billboard_check).
 */
#ifndef PIPELINE_ENGINE_SHORT_BILLBOARD_H
#define PIPELINE_ENGINE_SHORT_BILLBOARD_H

#include "pipeline/run/engine_state.h"

struct trib_short_billboard;

/**
 * trib_billboard_prepare - allocate the billboard state of the run, if it may use the
 * billboard.
 *
 * run      fits the short path, and its neighbors are connected
 * out      receives NULL if it may not
 * errors   TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_billboard_prepare(const struct trib_engine *e,
                                     const struct trib_run *run,
                                     struct trib_short_billboard **out);

void trib_billboard_dispose(struct trib_short_billboard *b);

/** trib_billboard_begin - begin an operation and publish this rank's contribution. */
void trib_billboard_begin(struct trib_engine *e, struct trib_run *run,
                          struct trib_short_billboard *b);

/** trib_billboard_pass - sum the contributions and end the operation if all have
 * arrived; return true if so. A failure marks the engine. */
bool trib_billboard_pass(struct trib_engine *e, struct trib_run *run,
                         struct trib_short_billboard *b);

/** trib_billboard_awaits - return the first rank, from rank `from` on, whose
 * contribution is missing, or -1. */
int trib_billboard_awaits(const struct trib_engine *e,
                          const struct trib_short_billboard *b, int from);

/** trib_billboard_awaits_core - return true if a missing rank was on this core at its
 * previous contribution, or its core is unknown. */
bool trib_billboard_awaits_core(const struct trib_engine *e,
                                const struct trib_short_billboard *b);

/**
 * trib_billboard_check - mark the engine if a peer has begun an operation other than
 * the active one: on its lanes while its entry is awaited, or on the billboard while
 * its frames are awaited.
 *
 * b        of the active run; NULL: the run does not use the billboard
 */
void trib_billboard_check(struct trib_engine *e, const struct trib_short_billboard *b);

#endif
