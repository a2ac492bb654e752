/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The result of a chunk, out of a code word.
 */
#ifndef PIPELINE_PAYLOAD_DECODE_H
#define PIPELINE_PAYLOAD_DECODE_H

#include "pipeline/engine/chunk.h"

/** trib_coded_value - the chunk's value out of a code word. */
trib_status_t trib_coded_value(struct trib_engine *e, struct trib_run *run,
                               const struct trib_chunk *c, const uint8_t *word,
                               size_t len);

#endif
