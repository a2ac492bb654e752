/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeps a copy of all that a start changes, so that an operation that was cut short can
 * be done again as if it had never begun. Only runs with run->desc.may_undo do so.
 *
 * Kept chunk by chunk, at its first change in this start: the state of the feedback,
 * and where the vector is in place, the contribution that a result overwrites. A model
 * is kept whole.
 */
#ifndef PIPELINE_PAYLOAD_UNDO_LOG_H
#define PIPELINE_PAYLOAD_UNDO_LOG_H

#include "pipeline/engine/chunk.h"

struct trib_chunk;

/** trib_undo_prepare - after trib_feedback_prepare; TRIB_ERR_NO_MEMORY. */
trib_status_t trib_undo_prepare(const struct trib_kernels *kernels,
                                struct trib_run *run);
void trib_undo_dispose(struct trib_run *run);

/** trib_undo_save_model - before a start, and before the exchange that goes with
 * it. */
void trib_undo_save_model(struct trib_run *run);

/** trib_undo_save_state - before a chunk's state changes; of one chunk one thread. */
void trib_undo_save_state(const struct trib_run *run, const struct trib_chunk *c);

/** trib_undo_save_input - before a chunk's result is stored. */
void trib_undo_save_input(const struct trib_run *run, const struct trib_chunk *c);

/** trib_undo_state, trib_undo_input - a chunk's state, or its contribution where a
 * result was stored over it, is what it was before the last start; of one chunk one
 * thread. */
void trib_undo_state(struct trib_run *run, const struct trib_chunk *c);
void trib_undo_input(struct trib_run *run, const struct trib_chunk *c);

/** trib_undo_rollback - undo the last start of a run that is not under way. */
void trib_undo_rollback(struct trib_run *run);

/**
 * trib_run_adopt - take over what another run of the same vector keeps between
 * operations.
 *
 * Neither is under way; `from` is then only good to be disposed of. A model that is cut
 * otherwise begins anew.
 */
void trib_run_adopt(struct trib_run *run, struct trib_run *from);

#endif
