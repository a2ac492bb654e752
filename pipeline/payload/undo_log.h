/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of all data that a start changes, so that an interrupted operation can be
 * repeated as if it had never begun.
 *
 * A run with run->desc.may_undo saves the data of its newest start. For each chunk it
 * saves the state of the feedback at the first change, and the contribution if an
 * in-place result overwrites it. A model is saved whole. A run with
 * run->desc.may_rewind saves only the state, of its two newest starts: a rank may have
 * begun the next start before another rank has ended this one.
 */
#ifndef PIPELINE_PAYLOAD_UNDO_LOG_H
#define PIPELINE_PAYLOAD_UNDO_LOG_H

#include "pipeline/run/chunk.h"

struct trib_chunk;

enum { TRIB_UNDO_STARTS = 2 }; /* starts saved with may_rewind */

/** trib_undo_prepare - allocate the copies, after trib_feedback_prepare;
 * TRIB_ERR_NO_MEMORY. */
trib_status_t trib_undo_prepare(const struct trib_kernels *kernels,
                                struct trib_run *run);
void trib_undo_dispose(struct trib_run *run);

/** trib_undo_save_model - save the model before a start and its exchange. */
void trib_undo_save_model(struct trib_run *run);

/** trib_undo_save_state - save a chunk's state before its change; one thread per
 * chunk. */
void trib_undo_save_state(const struct trib_run *run, const struct trib_chunk *c);

/** trib_undo_save_input - save a chunk's input before its result is stored. */
void trib_undo_save_input(const struct trib_run *run, const struct trib_chunk *c);

/** trib_undo_state, trib_undo_input - restore a chunk's state, or its input, from
 * before the last start; one thread per chunk. */
void trib_undo_state(struct trib_run *run, const struct trib_chunk *c);
void trib_undo_input(struct trib_run *run, const struct trib_chunk *c);

/** trib_undo_rollback - undo the last start of a run that is not in progress. */
void trib_undo_rollback(struct trib_run *run);

/** trib_undo_reaches - return true if trib_undo_rewind can restore the state after
 * start `step`. */
bool trib_undo_reaches(const struct trib_run *run, uint32_t step);

/** trib_undo_rewind - restore the state, not the buffers, after start `step`, of a run
 * that is not in progress. */
void trib_undo_rewind(struct trib_run *run, uint32_t step);

/** trib_undo_forget - discard the copies, because the state was replaced from
 * elsewhere. */
void trib_undo_forget(struct trib_run *run);

/**
 * trib_run_adopt - move the state between operations from another run of the same
 * vector to this run.
 *
 * Neither run is in progress; `from` may then only be disposed of. A model that is
 * divided differently restarts.
 */
void trib_run_adopt(struct trib_run *run, struct trib_run *from);

#endif
