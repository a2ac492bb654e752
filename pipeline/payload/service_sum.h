/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums at a service by a codec that neither selects nor adds, in a plan with error
 * feedback.
 *
 * What the code word of a result leaves out must come again, or results drift: so
 * somebody keeps it. Not the service, which may end, and which no rank can ask when it
 * saves its state. One rank gets the result as float32 in the place of the code word
 * (TRIB_FRAME_SUM), makes the word that the others get, which has the same bits, and
 * adds what that leaves out to its own residual. So a service has no state between two
 * operations: what ranks save is all, and a service that is killed takes nothing with
 * it.
 *
 * Which rank it is goes round with the chunks of the vector, and is the same in each
 * operation. Between services of a tree sums go up as float32, and come down so on the
 * way to that rank. With a quorum the bitmap stands behind the floats as behind a word.
 */
#ifndef PIPELINE_PAYLOAD_SERVICE_SUM_H
#define PIPELINE_PAYLOAD_SERVICE_SUM_H

#include "pipeline/engine/run.h"

struct trib_service_sum {
    float *floats;    /* [n_chunks * piece] newest sum of each chunk of a round */
    uint32_t *finals; /* [n_chunks] SENDs of its result */
    bool *has_result; /* [n_chunks] floats has the newest result, not a part of it */
};

/** trib_service_sum_prepare - of a service's run, where it is such a plan;
 * TRIB_ERR_NO_MEMORY. */
trib_status_t trib_service_sum_prepare(struct trib_run *run);
void trib_service_sum_dispose(struct trib_run *run);

/** trib_service_sum_bytes - what that allocates, or a little more. */
uint64_t trib_service_sum_bytes(const struct trib_run *run);

/** trib_service_sum_at - where a service has the newest sum of a chunk of a round. */
static inline float *trib_service_sum_at(const struct trib_run *run, uint32_t chunk)
{
    return run->sum->floats + (size_t)chunk * run->desc.piece;
}

/** trib_service_sum_finish - the newest sum of t's chunk is its result: make the code
 * word. */
void trib_service_sum_finish(struct trib_run *run, const struct trib_task *t,
                             const struct trib_chunk *c);

/** trib_service_sum_goes - does this SEND of a service carry floats in the place of a
 * word? */
bool trib_service_sum_goes(const struct trib_run *run, const struct trib_task *t,
                           const struct trib_chunk *c);

/** trib_service_sum_fill - the frame of such a SEND; payload: of its slot. Returns
 * bytes. */
uint32_t trib_service_sum_fill(const struct trib_run *run, const struct trib_task *t,
                               const struct trib_chunk *c, uint8_t *payload,
                               struct trib_entry *entry);

/** trib_service_sum_valid - is that a frame of c's floats, and `behind` bytes, from a
 * service? */
bool trib_service_sum_valid(const struct trib_engine *e, int peer,
                            const struct trib_chunk *c, const struct trib_entry *entry,
                            size_t behind);

/**
 * trib_service_sum_take - COPY_IN of such a frame, which is valid: on a rank, or to be
 * passed on.
 *
 * ranks    that are in a mean
 */
trib_status_t trib_service_sum_take(struct trib_engine *e, struct trib_run *run,
                                    const struct trib_task *t,
                                    const struct trib_chunk *c, const uint8_t *payload,
                                    int ranks);

#endif
