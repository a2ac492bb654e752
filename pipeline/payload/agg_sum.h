/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums at an aggregator in a plan with error feedback. Used for codecs that neither
 * select nor add linearly, and for selecting codecs that lose part of a result.
 *
 * The loss of an encoded result must be kept and sent later, or results drift. The
 * aggregator cannot keep it: it may end, and ranks cannot query it when they save their
 * state. Therefore one rank receives the result as float32 (TRIB_FRAME_SUM), encodes it
 * to the same bits that the others receive, and adds the loss to its own residual. An
 * aggregator thus has no state between two operations: the ranks save everything, and
 * nothing is lost with a killed aggregator.
 *
 * The chunks of the vector rotate among the ranks, equally in each operation. In a tree
 * of aggregators sums travel up as float32, and down as float32 on the way to that
 * rank. If the codec selects, an encoded chunk of all nonzero elements
 * (TRIB_ENCODE_EXACT) replaces the floats; its sums travel up in ordinary frames.
 *
 * With a quorum the bitmap follows the floats as it follows an encoded payload.
 */
#ifndef PIPELINE_PAYLOAD_AGG_SUM_H
#define PIPELINE_PAYLOAD_AGG_SUM_H

#include "pipeline/run/chunk.h"

struct trib_agg_sum {
    float *floats;    /* [n_chunks * piece] newest sum of each chunk of a round */
    uint32_t *finals; /* [n_chunks] number of SENDs of its result */
    bool *has_result; /* [n_chunks] floats has the complete newest result */
};

/** trib_agg_sum_prepare - allocate the sums of an aggregator's run if the plan needs
 * them; TRIB_ERR_NO_MEMORY. */
trib_status_t trib_agg_sum_prepare(struct trib_run *run);
void trib_agg_sum_dispose(struct trib_run *run);

/** trib_agg_sum_bytes - return an upper bound, slightly high, of the bytes that
 * trib_agg_sum_prepare allocates. */
uint64_t trib_agg_sum_bytes(const struct trib_run *run);

/** trib_agg_sum_at - return an aggregator's newest sum of a chunk of a round. */
float *trib_agg_sum_at(const struct trib_run *run, uint32_t chunk);

/** trib_agg_sum_finish - encode the newest sum of t's chunk as its result. */
void trib_agg_sum_finish(struct trib_run *run, const struct trib_task *t,
                         const struct trib_chunk *c);

/** trib_agg_sum_goes - return true if this SEND of an aggregator carries floats. */
bool trib_agg_sum_goes(const struct trib_run *run, const struct trib_task *t,
                       const struct trib_chunk *c);

/** trib_agg_sum_fill - fill frame and slot of such a SEND; return the payload size. */
uint32_t trib_agg_sum_fill(const struct trib_run *run, const struct trib_task *t,
                           const struct trib_chunk *c, uint8_t *payload,
                           struct trib_entry *entry);

/** trib_agg_sum_valid - return true if the frame is from an aggregator and has the sum
 * of c followed by `behind` bytes. */
bool trib_agg_sum_valid(const struct trib_engine *e, const struct trib_run *run,
                        int peer, const struct trib_chunk *c,
                        const struct trib_entry *entry, size_t behind);

/**
 * trib_agg_sum_take - COPY_IN of such a valid frame, on a rank or on a forwarding
 * aggregator.
 *
 * sum      the payload of the frame without the bytes after the sum
 * ranks    number of ranks in a mean
 * errors   TRIB_ERR_CODEC if an encoded chunk is invalid
 */
trib_status_t trib_agg_sum_take(struct trib_engine *e, struct trib_run *run,
                                const struct trib_task *t, const struct trib_chunk *c,
                                struct trib_encoded sum, int ranks);

#endif
