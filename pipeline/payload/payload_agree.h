/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agreement of ranks before they encode: the scales of codecs whose words add.
 *
 * The floats that a round's chunks want (trib_codec_propose) are one small vector, of
 * which the largest of all ranks, float by float, counts; with a model
 * (trib_model_propose) their sum. That is an all-reduce of its own, whose steps stand
 * in front of those of the vector in one schedule. Its chunks are numbered from
 * desc.n_chunks on. They run one round ahead: in round r of the program the ranks agree
 * on what round r of the vector is encoded with, and move round r - 1 of the vector; so
 * the agreement on one round goes on beside the encoding, the wire and the sums of the
 * one before. Round 0 has no chunks of the vector, the last one none of the agreement.
 * How much of the vector a round is, so that an agreement is there when the chunks
 * before it are gone: see comm/plan_make.c.
 *
 * Why this cannot dead-lock (the argument of engine.c, one order of all steps): the
 * steps of the agreement depend on none of the vector, and come first in each round. A
 * step that encodes waits, beyond its dep, for the agreement of the round before, which
 * comes before it in that order.
 */
#ifndef PIPELINE_PAYLOAD_PAYLOAD_AGREE_H
#define PIPELINE_PAYLOAD_PAYLOAD_AGREE_H

#include "pipeline/engine/chunk.h"

/* The agreement of all ranks before a chunk is encoded: see payload_agree.h. */
struct trib_share {
    size_t floats;      /* of a chunk of `piece` elements */
    float *own;         /* [rounds * n_chunks * floats] what this rank wants */
    float *value;       /* the same, of all ranks: what is sent on, so nothing changes
                         * it */
    float *agreed;      /* the same, as the model settles it for this rank; NULL: no
                         * model */
    float *kept;        /* [total] what is to be encoded, where nothing else has it; or
                         * NULL */
    uint32_t *measured; /* [rounds] the start in which own was measured last */
    uint32_t *settled;  /* [rounds * n_chunks] the start in which a chunk's value was
                         * last */
    uint32_t step;      /* which start this is */
};

/** trib_share_bytes - what trib_share_prepare will allocate, or a little more. */
uint64_t trib_share_bytes(const struct trib_run *run);

/** trib_share_prepare - errors TRIB_ERR_NO_MEMORY */
trib_status_t trib_share_prepare(struct trib_run *run);
void trib_share_dispose(struct trib_run *run);

/** trib_share_begin - a start begins. */
void trib_share_begin(struct trib_run *run);

/** trib_share_agreed - has this round of the program what its chunks are encoded
 * with? */
bool trib_share_agreed(const struct trib_run *run, uint32_t round);

/** trib_share_ready - may what t encodes be encoded? */
bool trib_share_ready(const struct trib_run *run, const struct trib_task *t);

/** trib_share_of - what the elements from c->first on are encoded with; NULL:
 * nothing. */
const float *trib_share_of(const struct trib_run *run, const struct trib_chunk *c);

/** trib_share_settle - it is agreed on: with a model, to be called before it is
 * used. */
void trib_share_settle(struct trib_run *run, const struct trib_chunk *c);

/** trib_share_kept - the elements of a chunk as their scales were measured: what is to
 * be encoded. NULL: nothing was measured, or the contribution is still as it was. */
const float *trib_share_kept(const struct trib_run *run, const struct trib_chunk *c);

#endif
