/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums that an aggregator closes without the late ranks: run->desc.quorum.
 *
 * An aggregator closes its chunks in order. It closes a chunk when all contributions
 * have arrived, or when enough have and the deadline has passed, counted from the first
 * contribution. A rank that missed a chunk is behind. The aggregator does not wait for
 * that rank again until its late frames have arrived and were dropped: recv[].skip
 * counts these per link, across operations.
 *
 * A result is an encoded chunk, followed by the bitmap of the ranks counted in it:
 *
 *     | encoded chunk | rank r is bit r % 8 of byte r / 8 |    frame.bytes covers both
 *
 * The aggregator keeps all results of a start, and trib_quorum_progress sends them over
 * each link as room permits; the SENDs of its program do not run. The operation
 * therefore ends when its chunks are closed, and a rank that does not receive results
 * delays no other. Frames of later operations follow these: link->out_frames counts
 * them. A plan may start again once every rank has received its last result; an earlier
 * start is a protocol error.
 *
 * A rank sends all its contributions and receives all results. If a result does not
 * count its contribution, the rank adds the contribution to the residual as it was
 * before.
 *
 * Why this cannot deadlock: an aggregator accepts late frames in any operation, so a
 * rank can always send. A rank receives a result after it has sent its contribution.
 * Results wait for ranks, but ranks never wait for each other's results.
 */
#ifndef PIPELINE_PAYLOAD_PARTIAL_H
#define PIPELINE_PAYLOAD_PARTIAL_H

#include "pipeline/run/chunk.h"

/* Results of a run that remain to be sent over one link; an element of the link's
 * list. */
struct trib_out {
    struct trib_out *next;
    struct trib_run *run;
    uint32_t sent; /* number of the run's results already sent */
    bool queued;
};

struct trib_quorum {
    size_t mask_bytes;
    /* Used by an aggregator. */
    uint32_t *order;     /* [n_order] REDUCEs of a round, in frame order */
    uint32_t n_order;
    uint32_t n_results;  /* number of results of a start */
    uint32_t closed;     /* number of closed chunks */
    uint64_t opened_ns;  /* first contribution to the next chunk; 0: none yet */
    uint8_t *counted;    /* [mask_bytes] ranks counted in the chunk being closed */
    uint8_t *results;    /* [n_results * stride] */
    float *sums;         /* [n_results * piece] sums as floats, if ranks receive them:
                          * agg_sum.h; or NULL */
    size_t stride;
    uint32_t *bytes;     /* [n_results] */
    uint32_t *chunk;     /* [n_results] chunk number */
    size_t *elements;    /* [n_results] */
    struct trib_out *out; /* [neighbors] */
    /* Used by a rank. */
    uint8_t *masks; /* [chunks * mask_bytes] bitmaps of the newest start */
};

/** trib_quorum_mask_bytes - return the size of a bitmap of `ranks` ranks. */
static inline size_t trib_quorum_mask_bytes(int ranks)
{
    return ((size_t)ranks + 7) / 8;
}

static inline bool trib_quorum_bit(const uint8_t *mask, int rank)
{
    return mask[rank / 8] >> rank % 8 & 1;
}

/** trib_quorum_counts - return true if the chunk being closed counts this peer's
 * contribution. */
bool trib_quorum_has(const struct trib_run *run, int peer);
static inline bool trib_quorum_counts(const struct trib_run *run, int peer)
{
    return !run->desc.quorum.need || trib_quorum_has(run, peer);
}

/** trib_quorum_contributors - return the number of ranks counted in the chunk being
 * closed. */
int trib_quorum_contributors(const struct trib_engine *e, const struct trib_run *run);

/** trib_quorum_in_result - return the number of ranks counted in a chunk whose result
 * this rank has. */
int trib_quorum_in_result(const struct trib_engine *e, const struct trib_run *run,
                          const struct trib_chunk *c);

/** trib_quorum_bytes - return an upper bound, slightly high, of the bytes that
 * trib_quorum_prepare allocates for an aggregator. */
uint64_t trib_quorum_bytes(const struct trib_engine *e, const struct trib_run *run);

/** trib_quorum_prepare - allocate the quorum state of a run, after its codec;
 * TRIB_ERR_NO_MEMORY. */
trib_status_t trib_quorum_prepare(struct trib_engine *e, struct trib_run *run);
void trib_quorum_dispose(struct trib_run *run);

/** trib_quorum_begin - begin an operation; return false if the engine has failed. */
bool trib_quorum_begin(struct trib_engine *e, struct trib_run *run);

/** trib_quorum_due - return true if t is an aggregator's next REDUCE and its chunk may
 * be closed. */
bool trib_quorum_due(struct trib_engine *e, struct trib_run *run,
                     const struct trib_task *t);

/** trib_quorum_skip - drop the next expected frame of this lane when it arrives. */
void trib_quorum_skip(struct trib_engine *e, struct trib_link *l, int lane);

/** trib_quorum_closed - keep the stored result of a chunk until it is sent. */
void trib_quorum_closed(struct trib_engine *e, struct trib_run *run,
                        const struct trib_task *t, const struct trib_chunk *c);

/** trib_quorum_progress - drop late frames and send kept results; return true if
 * anything moved. */
bool trib_quorum_progress(struct trib_engine *e);

/** trib_quorum_idle - return true if all results of the run were sent to every rank. */
bool trib_quorum_idle(const struct trib_run *run);

/**
 * trib_quorum_result - read the bitmap after a result, and restore the contribution if
 * it is not counted.
 *
 * len      in: length of the payload, out: length of the encoded chunk
 * errors   TRIB_ERR_PROTOCOL: not a bitmap with enough ranks
 */
trib_status_t trib_quorum_result(struct trib_engine *e, struct trib_run *run,
                                 const struct trib_chunk *c, const uint8_t *payload,
                                 uint32_t *len);

/* The state of a start that all ranks agree on, for ranks that lost their
 * aggregators. */
struct trib_quorum_start {
    uint64_t number;
    uint64_t count, element; /* number of elements, bytes per element */
    uint64_t piece, chunks;
    uint64_t mask_bytes;
    uint8_t bytes[]; /* masks [chunks * mask_bytes], result [count * element] */
};

static inline size_t trib_quorum_start_bytes(const struct trib_quorum_start *s)
{
    return sizeof(*s) + s->chunks * s->mask_bytes + s->count * s->element;
}

static inline const uint8_t *trib_quorum_values(const struct trib_quorum_start *s)
{
    return s->bytes + s->chunks * s->mask_bytes;
}

/** trib_quorum_room - allocate a start of this run; the caller frees it. NULL: out of
 * memory. */
struct trib_quorum_start *trib_quorum_room(const struct trib_run *run);

/** trib_quorum_copy - copy the run's newest start, which is done, to memory of
 * trib_quorum_room. */
void trib_quorum_copy(const struct trib_run *run, uint64_t number,
                      struct trib_quorum_start *out);

/** trib_quorum_valid - return true if the size of s is consistent and its bitmaps have
 * this number of ranks. */
bool trib_quorum_valid(const struct trib_quorum_start *s, size_t bytes, int ranks);

/** trib_quorum_of_run - return true if s belongs to the same vector as the run, divided
 * alike. */
bool trib_quorum_of_run(const struct trib_quorum_start *s, const struct trib_run *run);

/** trib_quorum_absent - count, for each rank, the elements of a start that lack its
 * contribution: out[ranks]. */
void trib_quorum_absent(const struct trib_quorum_start *s, int ranks, size_t *out);

/**
 * trib_quorum_undo - undo the uncounted contributions of a start that was interrupted.
 *
 * Chunks that count this rank were sent and stay as encoded. In-place input is
 * restored. trib_quorum_deliver must follow, on this run or on one that has adopted its
 * state.
 */
void trib_quorum_undo(struct trib_engine *e, struct trib_run *run,
                      const struct trib_quorum_start *s);

/**
 * trib_quorum_deliver - deliver such a start: write its result, and add the
 * contributions that it does not count to the residual.
 *
 * The whole contribution must be available. begun: run->now.step already counts this
 * start
 */
void trib_quorum_deliver(struct trib_engine *e, struct trib_run *run,
                         const struct trib_quorum_start *s, const void *send,
                         void *recv, bool begun);

#endif
