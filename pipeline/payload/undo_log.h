/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeps a copy of all that a start changes, so that an operation that was cut short can
 * be done again as if it had never begun.
 *
 * A run with run->desc.may_undo keeps it of its newest start: chunk by chunk, at the
 * first change in this start, the state of the feedback, and where the vector is in
 * place, the contribution that a result overwrites. A model is kept whole. A run with
 * run->desc.may_rewind keeps the state alone, of its two newest starts: a rank may have
 * begun the next start before another rank has ended this one.
 */
#ifndef PIPELINE_PAYLOAD_UNDO_LOG_H
#define PIPELINE_PAYLOAD_UNDO_LOG_H

#include "pipeline/engine/chunk.h"

struct trib_chunk;

enum { TRIB_UNDO_STARTS = 2 }; /* of may_rewind */

/** trib_undo_prepare - allocate the copies, after trib_feedback_prepare;
 * TRIB_ERR_NO_MEMORY. */
trib_status_t trib_undo_prepare(const struct trib_kernels *kernels,
                                struct trib_run *run);
void trib_undo_dispose(struct trib_run *run);

/** trib_undo_save_model - keep the model before a start, and before its exchange. */
void trib_undo_save_model(struct trib_run *run);

/** trib_undo_save_state - keep a chunk's state before its change; one thread per
 * chunk. */
void trib_undo_save_state(const struct trib_run *run, const struct trib_chunk *c);

/** trib_undo_save_input - keep a chunk's input before its result is stored. */
void trib_undo_save_input(const struct trib_run *run, const struct trib_chunk *c);

/** trib_undo_state, trib_undo_input - restore a chunk's state, or its input, from
 * before the last start; one thread per chunk. */
void trib_undo_state(struct trib_run *run, const struct trib_chunk *c);
void trib_undo_input(struct trib_run *run, const struct trib_chunk *c);

/** trib_undo_rollback - undo the last start of a run that is not under way. */
void trib_undo_rollback(struct trib_run *run);

/** trib_undo_reaches - true if trib_undo_rewind can go back to behind start `step`. */
bool trib_undo_reaches(const struct trib_run *run, uint32_t step);

/** trib_undo_rewind - the state, not the buffers, as behind start `step`, of a run that
 * is not under way. */
void trib_undo_rewind(struct trib_run *run, uint32_t step);

/** trib_undo_forget - the state has come from elsewhere: what was kept is of
 * another. */
void trib_undo_forget(struct trib_run *run);

/**
 * trib_run_adopt - take over what another run of the same vector keeps between
 * operations.
 *
 * Neither is under way; `from` is then only good to be disposed of. A model that is cut
 * otherwise begins anew.
 */
void trib_run_adopt(struct trib_run *run, struct trib_run *from);

#endif
