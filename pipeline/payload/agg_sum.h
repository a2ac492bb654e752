/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums at an aggregator by a codec that neither selects nor adds, or that loses
 * something of results of selections, in a plan with error feedback.
 *
 * The loss of an encoded result must be kept and sent later, or results drift. The
 * aggregator cannot keep it: it may end, and no rank can ask it when the rank saves its
 * state. So one rank gets the result as float32 (TRIB_FRAME_SUM), encodes it to the
 * same bits that the others get, and adds the loss to its own residual. An aggregator
 * has no state between two operations: the ranks save everything, and an aggregator
 * that is killed takes nothing with it.
 *
 * The chunks of the vector take turns among the ranks, the same in each operation. In a
 * tree of aggregators sums go up as float32, and come down so on the way to that rank.
 * Of a codec that selects, all that is not 0 comes in the place of the floats, as a
 * code word (TRIB_ENCODE_EXACT); and sums go up so, by ordinary frames.
 *
 * With a quorum the bitmap stands behind the floats as behind an encoded payload.
 */
#ifndef PIPELINE_PAYLOAD_AGG_SUM_H
#define PIPELINE_PAYLOAD_AGG_SUM_H

#include "pipeline/engine/chunk.h"

struct trib_agg_sum {
    float *floats;    /* [n_chunks * piece] newest sum of each chunk of a round */
    uint32_t *finals; /* [n_chunks] SENDs of its result */
    bool *has_result; /* [n_chunks] floats has the newest result, not a part of it */
};

/** trib_agg_sum_prepare - allocate the sums of an aggregator's run if the plan needs
 * them; TRIB_ERR_NO_MEMORY. */
trib_status_t trib_agg_sum_prepare(struct trib_run *run);
void trib_agg_sum_dispose(struct trib_run *run);

/** trib_agg_sum_bytes - bytes that trib_agg_sum_prepare allocates, or a little more. */
uint64_t trib_agg_sum_bytes(const struct trib_run *run);

/** trib_agg_sum_at - an aggregator's newest sum of a chunk of a round. */
float *trib_agg_sum_at(const struct trib_run *run, uint32_t chunk);

/** trib_agg_sum_finish - encode the newest sum of t's chunk, which is its result. */
void trib_agg_sum_finish(struct trib_run *run, const struct trib_task *t,
                         const struct trib_chunk *c);

/** trib_agg_sum_goes - true if this SEND of an aggregator carries floats. */
bool trib_agg_sum_goes(const struct trib_run *run, const struct trib_task *t,
                       const struct trib_chunk *c);

/** trib_agg_sum_fill - fill frame and slot of such a SEND; returns its bytes. */
uint32_t trib_agg_sum_fill(const struct trib_run *run, const struct trib_task *t,
                           const struct trib_chunk *c, uint8_t *payload,
                           struct trib_entry *entry);

/** trib_agg_sum_valid - true if an aggregator sent c's sum and `behind` bytes. */
bool trib_agg_sum_valid(const struct trib_engine *e, const struct trib_run *run,
                        int peer, const struct trib_chunk *c,
                        const struct trib_entry *entry, size_t behind);

/**
 * trib_agg_sum_take - COPY_IN of such a valid frame, on a rank or to be passed on.
 *
 * sum      the frame's payload without what stands behind the sum
 * ranks    number of ranks in a mean
 * errors   TRIB_ERR_CODEC if a code word is no such sum
 */
trib_status_t trib_agg_sum_take(struct trib_engine *e, struct trib_run *run,
                                const struct trib_task *t, const struct trib_chunk *c,
                                struct trib_encoded sum, int ranks);

#endif
