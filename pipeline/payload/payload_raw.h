/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chunks of raw elements. The table is in payload.h.
 */
#ifndef PIPELINE_PAYLOAD_PAYLOAD_RAW_H
#define PIPELINE_PAYLOAD_PAYLOAD_RAW_H

#include "pipeline/run/engine_state.h"

/** trib_raw_copy - copy the input of a chunk to its result. */
void trib_raw_copy(struct trib_engine *e, struct trib_run *run,
                   const struct trib_chunk *c);

/* Rows of payload.h, for payload_blocks.c. */
void trib_raw_end(struct trib_engine *e, struct trib_run *run);
bool trib_raw_ready(struct trib_engine *e, struct trib_run *run,
                    const struct trib_task *t, const struct trib_chunk *c);
void trib_raw_zcopy_to_slot(struct trib_engine *e, struct trib_run *run,
                            struct trib_task *t, const struct trib_chunk *c);
trib_status_t trib_raw_copy_task(struct trib_engine *e, struct trib_run *run,
                                 struct trib_task *t, const struct trib_chunk *c);

#endif
