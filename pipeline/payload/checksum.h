/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checksums of frames (TRIB_CHECK=sum). Data damaged between sender and receiver ends
 * the operation before it is summed; the error names both ranks and the chunk.
 *
 * The sender computes a CRC-32C of the frame's header and data, wherever the data is:
 * in the slot, in the sender's memory that the receiver reads, or in the receiver's
 * memory that the sender has written. The receiver recomputes it from the data it
 * finds. Forwarded results get a new checksum. It uses four otherwise unused bytes of
 * the entry, so frames do not grow.
 *
 * It detects damage, not tampering: an attacker can compute a matching CRC. The job's
 * secret protects against attackers.
 */
#ifndef PIPELINE_PAYLOAD_CHECKSUM_H
#define PIPELINE_PAYLOAD_CHECKSUM_H

#include "pipeline/run/chunk.h"

/** trib_checksum_set - set the checksum of a SEND's frame, whose entry is filled but
 * not published. */
void trib_checksum_set(struct trib_engine *e, const struct trib_run *run,
                       const struct trib_task *t, const struct trib_chunk *c);

/** trib_checksum_set_slot - set the checksum of a frame whose data is all in its
 * slot. */
void trib_checksum_set_slot(struct trib_engine *e, struct trib_link *l, int lane);

/**
 * trib_checksum_wrong - return true if a task's frame differs from the one that was
 * sent.
 *
 * t        the REDUCE or COPY_IN; its frame has arrived and belongs to the operation
 * from     neighbor and lane of the frame
 * returns  true: the engine has failed, TRIB_ERR_PROTOCOL. Also false if the frame's
 *          data cannot exist: the task itself then rejects the frame
 */
bool trib_checksum_wrong(struct trib_engine *e, const struct trib_run *run,
                         const struct trib_task *t, const struct trib_contrib *from,
                         const struct trib_chunk *c);

/** trib_checksum_wrong_slot - as trib_checksum_wrong, for a frame whose data is all in
 * its slot. */
bool trib_checksum_wrong_slot(struct trib_engine *e, struct trib_link *l, int lane);

#endif
