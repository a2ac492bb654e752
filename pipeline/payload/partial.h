/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums that an aggregator closes without the late ranks: run->desc.quorum.
 *
 * An aggregator closes its chunks in their order. It closes one when all contributions
 * are in, or when enough are and the deadline has passed, which runs from the first of
 * them on. A rank that missed a chunk is behind. The aggregator does not wait for it
 * until the frames have come that are to be dropped: recv[].skip counts them for a
 * link, and lasts from operation to operation.
 *
 * A result is a code word, followed by the bitmap of the ranks that it counts:
 *
 *     | code word | rank r is bit r % 8 of byte r / 8 |    frame.bytes is of both
 *
 * The aggregator keeps all results of a start, and trib_quorum_progress sends them over
 * each link as there is room; the SENDs of its program do not run. So the operation is
 * over when its chunks are closed, and a rank that takes no results delays no other.
 * Frames of later operations stand behind these: link->out_frames counts them. A plan
 * starts again when every rank has taken its last result; a rank that starts earlier
 * breaks the protocol.
 *
 * A rank sends all its contributions and receives all results. If a result does not
 * count its contribution, the rank adds that to the residual, as it was before.
 *
 * Why this cannot dead-lock: an aggregator takes frames to be dropped in any operation,
 * so a rank can always send. A rank takes a result when it has sent its contribution,
 * and results wait for ranks, never ranks for each other's results.
 */
#ifndef PIPELINE_PAYLOAD_PARTIAL_H
#define PIPELINE_PAYLOAD_PARTIAL_H

#include "pipeline/engine/chunk.h"

/* Results of a run that are still to be sent over one link; an element of the link's
 * list. */
struct trib_out {
    struct trib_out *next;
    struct trib_run *run;
    uint32_t sent; /* number of run's results that were sent */
    bool queued;
};

struct trib_quorum {
    size_t mask_bytes;
    /* An aggregator's part. */
    uint32_t *order;     /* [n_order] the REDUCEs of a round, in the order of their
                          * frames */
    uint32_t n_order;
    uint32_t n_results;  /* results of a start */
    uint32_t closed;     /* chunks of these that are closed */
    uint64_t opened_ns;  /* time at which the first contribution to the next one was
                          * seen; 0: none was */
    uint8_t *counted;    /* [mask_bytes] ranks that the chunk counts that is closed
                          * now */
    uint8_t *results;    /* [n_results * stride] */
    float *sums;         /* [n_results * piece] sums, where ranks get them, too:
                          * agg_sum.h; or NULL */
    size_t stride;
    uint32_t *bytes;     /* [n_results] */
    uint32_t *chunk;     /* [n_results] number of the chunk */
    size_t *elements;    /* [n_results] */
    struct trib_out *out; /* [neighbors] */
    /* A rank's part. */
    uint8_t *masks; /* [chunks * mask_bytes] bitmaps of the newest start, by the chunk's
                     * number */
};

/** trib_quorum_mask_bytes - the size of a bitmap of so many ranks. */
static inline size_t trib_quorum_mask_bytes(int ranks)
{
    return ((size_t)ranks + 7) / 8;
}

static inline bool trib_quorum_bit(const uint8_t *mask, int rank)
{
    return mask[rank / 8] >> rank % 8 & 1;
}

/** trib_quorum_bits - the number of ranks in a bitmap of so many bytes. */
int trib_quorum_bits(const uint8_t *mask, size_t bytes);

/** trib_quorum_counts - true if the chunk that is closed now counts this peer's
 * contribution. */
bool trib_quorum_has(const struct trib_run *run, int peer);
static inline bool trib_quorum_counts(const struct trib_run *run, int peer)
{
    return !run->desc.quorum.need || trib_quorum_has(run, peer);
}

/** trib_quorum_contributors - the number of ranks that this chunk counts. */
int trib_quorum_contributors(const struct trib_engine *e, const struct trib_run *run);

/** trib_quorum_in_result - the number of ranks in a chunk whose result this rank
 * has. */
int trib_quorum_in_result(const struct trib_engine *e, const struct trib_run *run,
                          const struct trib_chunk *c);

/** trib_quorum_bytes - the bytes that trib_quorum_prepare will allocate for an
 * aggregator, or a little more. */
uint64_t trib_quorum_bytes(const struct trib_engine *e, const struct trib_run *run);

/** trib_quorum_prepare - allocate what a run with a quorum needs, after its codec;
 * TRIB_ERR_NO_MEMORY. */
trib_status_t trib_quorum_prepare(struct trib_engine *e, struct trib_run *run);
void trib_quorum_dispose(struct trib_run *run);

/** trib_quorum_begin - begin an operation; false if the engine has failed. */
bool trib_quorum_begin(struct trib_engine *e, struct trib_run *run);

/** trib_quorum_due - true if t is the next REDUCE of an aggregator and its chunk may be
 * closed. */
bool trib_quorum_due(struct trib_engine *e, struct trib_run *run,
                     const struct trib_task *t);

/** trib_quorum_skip - drop the next awaited frame of this lane when it comes. */
void trib_quorum_skip(struct trib_engine *e, struct trib_link *l, int lane);

/** trib_quorum_closed - keep the result of a chunk, which is in its store, to be
 * sent. */
void trib_quorum_closed(struct trib_engine *e, struct trib_run *run,
                        const struct trib_task *t, const struct trib_chunk *c);

/** trib_quorum_progress - drop late frames and send kept results; true if anything
 * moved. */
bool trib_quorum_progress(struct trib_engine *e);

/** trib_quorum_idle - true if every rank has been sent all of the run's results. */
bool trib_quorum_idle(const struct trib_run *run);

/**
 * trib_quorum_result - take the bitmap behind a result, and take back the contribution
 * if it is not counted.
 *
 * len      in: of the payload, out: of its code word
 * errors   TRIB_ERR_PROTOCOL: that is no bitmap of enough ranks
 */
trib_status_t trib_quorum_result(struct trib_engine *e, struct trib_run *run,
                                 const struct trib_chunk *c, const uint8_t *payload,
                                 uint32_t *len);

/* A start as all ranks know it, for ranks that lost their aggregators. */
struct trib_quorum_start {
    uint64_t number;
    uint64_t count, element; /* elements, bytes of one */
    uint64_t piece, chunks;
    uint64_t mask_bytes;
    uint8_t bytes[]; /* masks [chunks * mask_bytes], then the result [count *
                      * element] */
};

static inline size_t trib_quorum_start_bytes(const struct trib_quorum_start *s)
{
    return sizeof(*s) + s->chunks * s->mask_bytes + s->count * s->element;
}

static inline const uint8_t *trib_quorum_values(const struct trib_quorum_start *s)
{
    return s->bytes + s->chunks * s->mask_bytes;
}

/** trib_quorum_room - allocate a start of this run; the owner frees it. NULL: no
 * memory. */
struct trib_quorum_start *trib_quorum_room(const struct trib_run *run);

/** trib_quorum_copy - copy the run's newest start, which is done, to memory of
 * trib_quorum_room. */
void trib_quorum_copy(const struct trib_run *run, uint64_t number,
                      struct trib_quorum_start *out);

/** trib_quorum_valid - true if s has this size, of a vector and ranks of that
 * number. */
bool trib_quorum_valid(const struct trib_quorum_start *s, size_t bytes, int ranks);

/** trib_quorum_of_run - true if s is of the same vector as the run, cut alike. */
bool trib_quorum_of_run(const struct trib_quorum_start *s, const struct trib_run *run);

/** trib_quorum_absent - count the elements of a start that lack each rank:
 * out[ranks]. */
void trib_quorum_absent(const struct trib_quorum_start *s, int ranks, size_t *out);

/**
 * trib_quorum_undo - undo what others do not count of a start that was cut short.
 *
 * Chunks in which they do were sent, and stay as they were encoded. What was in place
 * is as it was before. trib_quorum_deliver must follow, on this run or on one that has
 * adopted it.
 */
void trib_quorum_undo(struct trib_engine *e, struct trib_run *run,
                      const struct trib_quorum_start *s);

/**
 * trib_quorum_deliver - hand out such a start: its result, and to the residual what
 * this rank lacks in it.
 *
 * All of the contribution is there. begun: run->now.step counts it
 */
void trib_quorum_deliver(struct trib_engine *e, struct trib_run *run,
                         const struct trib_quorum_start *s, const void *send,
                         void *recv, bool begun);

#endif
