/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agreement of ranks before they encode: the scales of codecs whose encoded chunks
 * add.
 *
 * The floats that each rank proposes for a round's chunks (trib_codec_propose) form a
 * small vector. The ranks agree on the maximum over all ranks, float by float, or with
 * a model (trib_model_propose) on the sum. This is an all-reduce whose steps precede
 * the vector's steps in one schedule; its chunks are numbered from desc.n_chunks. It
 * runs L = desc.share_lead rounds ahead: in round r of the program the ranks agree on
 * the scales of the vector's round r and move its round r - L. The agreement on a round
 * thus overlaps with encoding, sending and summing earlier rounds. The first L rounds
 * have no chunks of the vector, the last L none of the agreement. plan_agreement.c
 * chooses L and the size of a round so that the agreement is in time even if a round
 * trip is long.
 *
 * Why this cannot deadlock (the argument of engine.c, one order of all steps): the
 * agreement's steps depend on none of the vector's, and come first in each round. A
 * step that encodes waits, beyond its dep, for the agreement of L rounds before, which
 * precedes it in that order.
 */
#ifndef PIPELINE_PAYLOAD_PAYLOAD_AGREE_H
#define PIPELINE_PAYLOAD_PAYLOAD_AGREE_H

#include "pipeline/run/chunk.h"

/* The agreement of all ranks before a chunk is encoded. */
struct trib_share {
    size_t floats;      /* floats for a chunk of `piece` elements */
    float *proposed;       /* [rounds * n_chunks * floats] proposal of this rank */
    float *acc;       /* the same shape: the combined proposals of all ranks */
    float *agreed;      /* the same shape: after the model's post-processing on this
                         * rank; NULL: no model */
    float *kept;        /* [total] elements to encode, if not elsewhere; or NULL */
    uint32_t *measured; /* [rounds] newest start in which the proposal was measured */
    uint32_t *settled;  /* [rounds * n_chunks] newest start in which a chunk's agreed
                         * floats were finished */
    uint32_t step;      /* number of this start */
};

/** trib_share_bytes - return an upper bound, slightly high, of the bytes that
 * trib_share_prepare allocates. */
uint64_t trib_share_bytes(const struct trib_run *run);

/** trib_share_prepare - allocate the agreement's arrays; TRIB_ERR_NO_MEMORY. */
trib_status_t trib_share_prepare(struct trib_run *run);
void trib_share_dispose(struct trib_run *run);

/** trib_share_begin - begin a start. */
void trib_share_begin(struct trib_run *run);

/** trib_share_agreed - return true if the ranks have agreed on the values that encode
 * this round of the program. */
bool trib_share_agreed(const struct trib_run *run, uint32_t round);

/** trib_share_ready - return true if t may encode its chunk. */
bool trib_share_ready(const struct trib_run *run, const struct trib_task *t);

/** trib_share_of - return the agreed floats of the elements from c->first on, or
 * NULL. */
const float *trib_share_of(const struct trib_run *run, const struct trib_chunk *c);

/** trib_share_settle - let the model finish the agreed floats of a chunk; call before
 * use. */
void trib_share_settle(struct trib_run *run, const struct trib_chunk *c);

/** trib_share_kept - return the measured elements of a chunk, which must be encoded;
 * NULL if the input is unchanged. */
const float *trib_share_kept(const struct trib_run *run, const struct trib_chunk *c);

#endif
