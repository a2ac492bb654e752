/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums that an aggregator closes without the late ones: run->desc.quorum.
 *
 * A node closes its chunks in their order. One is closed when all contributions are in,
 * or when its deadline, which runs from the first of them on, has passed and enough
 * are. A rank that missed one is behind, and not waited for, until the frames have come
 * that are to be dropped: recv[].skip counts them, for a link, and lasts from operation
 * to operation.
 *
 * A result is a code word, and behind it the bitmap of who is in it:
 *
 *     | code word | rank r is bit r % 8 of byte r / 8 |    frame.bytes is of both
 *
 * The node keeps all results of a start and sends them over each link as it has room
 * there, by trib_quorum_progress; SENDs of its program are not run. So the operation is
 * over when its chunks are closed, and a rank that takes no results holds up nobody.
 * Frames of later operations stand behind these: their turns count link->out_frames. A
 * plan is not started again before every rank has taken its last result; who does has
 * broken the protocol.
 *
 * A rank sends all its contributions and receives all results. One that lacks its own:
 * the chunk was not sent, and what would have been is added to the residual that was
 * there before.
 *
 * Why this cannot dead-lock: frames to be dropped are taken whatever runs, so a rank
 * can always send; it takes a result when it has sent its own, and results wait for
 * ranks, never ranks for each other's results.
 */
#ifndef PIPELINE_PAYLOAD_PARTIAL_H
#define PIPELINE_PAYLOAD_PARTIAL_H

#include "pipeline/engine/chunk.h"

/* Results of a run that are still to be sent over one link; in its list. */
struct trib_out {
    struct trib_out *next;
    struct trib_run *run;
    uint32_t sent; /* of run->quorum->n_results */
    bool queued;
};

struct trib_quorum {
    size_t mask_bytes;
    /* of a node */
    uint32_t *order;     /* [n_order] the REDUCEs of a round, in the order of their
                          * frames */
    uint32_t n_order;
    uint32_t n_results;  /* of a start */
    uint32_t closed;     /* of these */
    uint64_t opened_ns;  /* when the first contribution of the next one was seen; 0:
                          * none was */
    uint8_t *counted;    /* [mask_bytes] who is in the chunk that is closed */
    uint8_t *results;    /* [n_results * stride] */
    float *sums;         /* [n_results * piece] where ranks get them, too:
                          * agg_sum.h; or NULL */
    size_t stride;
    uint32_t *bytes;     /* [n_results] */
    uint32_t *chunk;     /* [n_results] number of the chunk */
    size_t *elements;    /* [n_results] */
    struct trib_out *out; /* [neighbors] */
    /* of a rank */
    uint8_t *masks; /* [chunks * mask_bytes] of the newest start, by the chunk's
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

/** trib_quorum_in_result - the same of a chunk whose result this rank has. */
int trib_quorum_in_result(const struct trib_engine *e, const struct trib_run *run,
                          const struct trib_chunk *c);

/** trib_quorum_bytes - what trib_quorum_prepare will allocate of an aggregator, or a
 * little more. */
uint64_t trib_quorum_bytes(const struct trib_engine *e, const struct trib_run *run);

/** trib_quorum_prepare - of a run with a quorum, once its codec is;
 * TRIB_ERR_NO_MEMORY. */
trib_status_t trib_quorum_prepare(struct trib_engine *e, struct trib_run *run);
void trib_quorum_dispose(struct trib_run *run);

/** trib_quorum_begin - an operation begins; false: the engine has failed. */
bool trib_quorum_begin(struct trib_engine *e, struct trib_run *run);

/** trib_quorum_due - is t the next REDUCE of a node, and may its chunk be closed? */
bool trib_quorum_due(struct trib_engine *e, struct trib_run *run,
                     const struct trib_task *t);

/** trib_quorum_skip - the next frame of this lane that is awaited will be dropped. */
void trib_quorum_skip(struct trib_engine *e, struct trib_link *l, int lane);

/** trib_quorum_closed - the result of a chunk is in its store: keep it, to be sent. */
void trib_quorum_closed(struct trib_engine *e, struct trib_run *run,
                        const struct trib_task *t, const struct trib_chunk *c);

/** trib_quorum_progress - drop what is late, send what is kept; true if anything
 * moved. */
bool trib_quorum_progress(struct trib_engine *e);

/** trib_quorum_idle - has every rank been sent all of the run's results? */
bool trib_quorum_idle(const struct trib_run *run);

/**
 * trib_quorum_result - a rank takes the bitmap behind a result, and what it lacks of
 * its own back.
 *
 * len      in: of the payload, out: of its code word
 * errors   TRIB_ERR_PROTOCOL: that is no bitmap of enough ranks
 */
trib_status_t trib_quorum_result(struct trib_engine *e, struct trib_run *run,
                                 const struct trib_chunk *c, const uint8_t *payload,
                                 uint32_t *len);

/* A start as all ranks know it: for those that have to do without the aggregator. */
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

/** trib_quorum_room - for a start of this run; owner: free. NULL: no memory. */
struct trib_quorum_start *trib_quorum_room(const struct trib_run *run);

/** trib_quorum_copy - the run's newest start, which is done, to memory of
 * trib_quorum_room. */
void trib_quorum_copy(const struct trib_run *run, uint64_t number,
                      struct trib_quorum_start *out);

/** trib_quorum_valid - has it so many bytes, of a vector and ranks of that size? */
bool trib_quorum_valid(const struct trib_quorum_start *s, size_t bytes, int ranks);

/** trib_quorum_of_run - is it of such a run: of the same vector, cut alike? */
bool trib_quorum_of_run(const struct trib_quorum_start *s, const struct trib_run *run);

/** trib_quorum_absent - how many elements of a start lack each rank: out[ranks]. */
void trib_quorum_absent(const struct trib_quorum_start *s, int ranks, size_t *out);

/**
 * trib_quorum_undo - of a start that was cut short undo what others do not count.
 *
 * Chunks in which they do were sent, and stay as they were encoded. What was in place
 * is as it was before. trib_quorum_deliver must follow, on this run or on one that has
 * adopted it.
 */
void trib_quorum_undo(struct trib_engine *e, struct trib_run *run,
                      const struct trib_quorum_start *s);

/**
 * trib_quorum_deliver - this rank's part of such a start: its result, and what is not
 * in it.
 *
 * All of the contribution is there. begun: run->now.step counts it
 */
void trib_quorum_deliver(struct trib_engine *e, struct trib_run *run,
                         const struct trib_quorum_start *s, const void *send,
                         void *recv, bool begun);

#endif
