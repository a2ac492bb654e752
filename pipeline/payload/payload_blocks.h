/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Raw elements of listed blocks (struct trib_blocks).
 *
 * Ranks do not know the places of blocks at their peers, so they exchange no ADVERT
 * frames. If the receiver reaches the sender's memory, and the block stays there until
 * the end, a GET frame names it: its payload is that of an ADVERT frame, with the chunk
 * as the first buffer. Everything else is as in payload_raw.c.
 */
#ifndef PIPELINE_PAYLOAD_PAYLOAD_BLOCKS_H
#define PIPELINE_PAYLOAD_PAYLOAD_BLOCKS_H

#include "pipeline/run/chunk.h"

/**
 * trib_blocks_expect - return true if a frame is valid although its count differs from
 * the operation's, because the count is the length of its block.
 *
 * Otherwise the run's template receives the expected length, for the error message.
 */
bool trib_blocks_expect(struct trib_run *run, const struct trib_frame *f,
                        uint32_t chunk);

#endif
