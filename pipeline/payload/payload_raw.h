/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chunks as elements as they are. The table is in payload.h.
 */
#ifndef PIPELINE_PAYLOAD_PAYLOAD_RAW_H
#define PIPELINE_PAYLOAD_PAYLOAD_RAW_H

#include "pipeline/engine/engine_state.h"

/** trib_raw_copy - make the input of a chunk its result. */
void trib_raw_copy(struct trib_engine *e, struct trib_run *run,
                   const struct trib_chunk *c);

/**
 * trib_raw_sum - sum the elements of any number of sources.
 *
 * src      [n_src] in the order of ranks
 * r        all but its sources is set
 */
void trib_raw_sum(struct trib_engine *e, struct trib_run *run,
                  const uint8_t *const *src, int n_src, struct trib_reduce_args *r);

#endif
