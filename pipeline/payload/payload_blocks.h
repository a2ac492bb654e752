/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Raw elements of listed blocks (struct trib_blocks).
 *
 * Ranks do not know where blocks lie at their peers, so they exchange no ADVERT frames.
 * Where the receiver reaches the sender's memory, and the block stays there till the
 * end, a frame GET names it: its payload is that of an ADVERT frame, whose first buffer
 * is the chunk. All else is as in payload_raw.c.
 */
#ifndef PIPELINE_PAYLOAD_PAYLOAD_BLOCKS_H
#define PIPELINE_PAYLOAD_PAYLOAD_BLOCKS_H

#include "pipeline/engine/chunk.h"

/**
 * trib_blocks_expect - true if a frame whose count is not the operation's is right,
 * because it tells the length of its block.
 *
 * Else the run's template has the length that was expected, for the sentence.
 */
bool trib_blocks_expect(struct trib_run *run, const struct trib_frame *f,
                        uint32_t chunk);

#endif
