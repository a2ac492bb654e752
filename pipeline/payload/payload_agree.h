/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agreement of ranks before they encode: the scales of codecs whose code words add.
 *
 * The floats that each rank proposes for a round's chunks (trib_codec_propose) are one
 * small vector. The ranks agree on the largest of all ranks, float by float, or with a
 * model (trib_model_propose) on the sum. That is an all-reduce whose steps stand in
 * front of those of the vector in one schedule; its chunks have numbers from
 * desc.n_chunks on. It runs desc.share_lead rounds ahead, L of them: in round r of the
 * program the ranks agree on the scales of round r of the vector, and move round r - L
 * of it. So the agreement on a round overlaps with encoding, sending and summing the
 * ones before. The first L rounds have no chunks of the vector, the last L none of the
 * agreement. comm/plan_agreement.c makes a round large enough, and L, for the agreement
 * to be there in time, also where a round trip takes long.
 *
 * Why this cannot dead-lock (the argument of engine.c, one order of all steps): the
 * steps of the agreement depend on none of the vector, and come first in each round. A
 * step that encodes waits, beyond its dep, for the agreement of L rounds before, which
 * comes before it in that order.
 */
#ifndef PIPELINE_PAYLOAD_PAYLOAD_AGREE_H
#define PIPELINE_PAYLOAD_PAYLOAD_AGREE_H

#include "pipeline/engine/chunk.h"

/* The agreement of all ranks before a chunk is encoded: see payload_agree.h. */
struct trib_share {
    size_t floats;      /* floats for a chunk of `piece` elements */
    float *proposed;       /* [rounds * n_chunks * floats] proposal of this rank */
    float *acc;       /* the same, of all ranks, as it is sent on */
    float *agreed;      /* the same, as the model settles it for this rank; NULL: no
                         * model */
    float *kept;        /* [total] elements to encode, where no other vector has them;
                         * or NULL */
    uint32_t *measured; /* [rounds] newest start in which the proposal was measured */
    uint32_t *settled;  /* [rounds * n_chunks] newest start in which a chunk was
                         * settled */
    uint32_t step;      /* number of this start */
};

/** trib_share_bytes - the bytes that trib_share_prepare will allocate, or a little
 * more. */
uint64_t trib_share_bytes(const struct trib_run *run);

/** trib_share_prepare - errors TRIB_ERR_NO_MEMORY */
trib_status_t trib_share_prepare(struct trib_run *run);
void trib_share_dispose(struct trib_run *run);

/** trib_share_begin - begin a start. */
void trib_share_begin(struct trib_run *run);

/** trib_share_agreed - true if the ranks have agreed on what this round of the program
 * is encoded with. */
bool trib_share_agreed(const struct trib_run *run, uint32_t round);

/** trib_share_ready - true if t may encode its chunk. */
bool trib_share_ready(const struct trib_run *run, const struct trib_task *t);

/** trib_share_of - the agreed floats for the elements from c->first on; NULL if there
 * are none. */
const float *trib_share_of(const struct trib_run *run, const struct trib_chunk *c);

/** trib_share_settle - let the model settle what was agreed on; called before a use. */
void trib_share_settle(struct trib_run *run, const struct trib_chunk *c);

/** trib_share_kept - the elements of a chunk as they were measured, which are to be
 * encoded; NULL if the input is still as it was. */
const float *trib_share_kept(const struct trib_run *run, const struct trib_chunk *c);

#endif
