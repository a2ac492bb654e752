/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums of raw elements, for chunks of any size.
 */
#ifndef PIPELINE_PAYLOAD_RAW_SUM_H
#define PIPELINE_PAYLOAD_RAW_SUM_H

#include "pipeline/run/engine_state.h"

/**
 * trib_raw_sum - sum the elements of any number of sources.
 *
 * src      [n_src] in rank order
 * r        arguments of the sum, except its sources
 */
void trib_raw_sum(struct trib_engine *e, struct trib_run *run,
                  const uint8_t *const *src, int n_src, struct trib_reduce_args *r);

#endif
