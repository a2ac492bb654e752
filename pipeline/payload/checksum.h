/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checksums of frames (TRIB_CHECK=sum): what was damaged between its sender and its
 * receiver ends the operation, with the names of both and the number of the chunk,
 * before it is summed.
 *
 * The sender of a frame makes a CRC-32C of its header and of the bytes that the frame
 * stands for, wherever those are: in the slot, in the sender's memory, where the
 * receiver reads them, or in the receiver's, where the sender has put them. The
 * receiver makes it again of what it finds there. Results that are passed on get a new
 * one. It travels in four bytes of the entry that are not used otherwise, so frames are
 * as long as without.
 *
 * It finds damage. Who means to deceive makes a CRC that fits: that is for the secret
 * of the job.
 */
#ifndef PIPELINE_PAYLOAD_CHECKSUM_H
#define PIPELINE_PAYLOAD_CHECKSUM_H

#include "pipeline/engine/chunk.h"

/** trib_checksum_set - set the checksum of a SEND's frame, whose entry is filled and
 * not published. */
void trib_checksum_set(struct trib_engine *e, const struct trib_run *run,
                       const struct trib_task *t, const struct trib_chunk *c);

/** trib_checksum_set_slot - set the checksum of a frame whose bytes are all in its
 * slot. */
void trib_checksum_set_slot(struct trib_engine *e, struct trib_link *l, int lane);

/**
 * trib_checksum_wrong - true if the frame that a task takes is not the one that was
 * sent.
 *
 * t        the REDUCE or COPY_IN; its frame, which is that of the operation, is there
 * from     the neighbor and lane by which it came
 * returns  true: the engine has failed, TRIB_ERR_PROTOCOL. false also where the bytes
 *          that it stands for cannot be: whoever takes them refuses it
 */
bool trib_checksum_wrong(struct trib_engine *e, const struct trib_run *run,
                         const struct trib_task *t, const struct trib_contrib *from,
                         const struct trib_chunk *c);

/** trib_checksum_wrong_slot - as trib_checksum_wrong, for a frame whose bytes are all
 * in its slot. */
bool trib_checksum_wrong_slot(struct trib_engine *e, struct trib_link *l, int lane);

#endif
