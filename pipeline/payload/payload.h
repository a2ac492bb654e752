/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The payload of a task, as a table of functions: raw elements, raw elements of listed
 * blocks, encoded chunks, encoded chunks that add linearly, (index, value) pairs, or
 * the agreement. trib_payload_prepare chooses the table; the engine calls through it
 * without knowing the kind.
 */
#ifndef PIPELINE_PAYLOAD_PAYLOAD_H
#define PIPELINE_PAYLOAD_PAYLOAD_H

#include "pipeline/payload/payload_blocks.h"
#include "pipeline/run/chunk.h"
#include "pipeline/run/engine_state.h"

/* The data that a frame stands for. */
struct trib_bytes {
    const uint8_t *at; /* NULL: in the frame's slot, or the frame is invalid */
    size_t n;
};

/* A function that can fail returns an error if a peer's frame is invalid. An error of
 * this rank marks the engine (failure.h) and is not returned. */
struct trib_payload_ops {
    const char *name;

    /** begin - begin an operation, before its links are polled; return false if the
     * engine has failed. */
    bool (*begin)(struct trib_engine *e, struct trib_run *run);
    /** end - end an operation, after which its memory is unused. */
    void (*end)(struct trib_engine *e, struct trib_run *run);

    /** chunk - return the chunk that t moves in its next round. */
    struct trib_chunk (*chunk)(const struct trib_run *run, const struct trib_task *t);
    /** room - return the maximum number of bytes that a SEND puts into its slot. */
    size_t (*room)(const struct trib_engine *e, const struct trib_run *run,
                   const struct trib_task *t, const struct trib_chunk *c);
    /** ready - return true if the payload allows t to run. The engine calls this last,
     * and then runs t at once. */
    bool (*ready)(struct trib_engine *e, struct trib_run *run,
                  const struct trib_task *t, const struct trib_chunk *c);

    /** fill - fill the entry of a SEND's frame; the engine publishes it. */
    void (*fill)(struct trib_engine *e, struct trib_run *run, struct trib_task *t,
                 const struct trib_chunk *c, struct trib_entry *entry);
    /** zcopy_to_slot - copy elements to the slot, for this frame and later ones,
     * because the transport cannot read the caller's memory. NULL: no frame is written
     * from the caller's memory. */
    void (*zcopy_to_slot)(struct trib_engine *e, struct trib_run *run,
                          struct trib_task *t, const struct trib_chunk *c);
    /** reduce - compute the k-ary sum; all frames have arrived and belong to this
     * operation. */
    trib_status_t (*reduce)(struct trib_engine *e, struct trib_run *run,
                            struct trib_task *t, const struct trib_chunk *c);
    trib_status_t (*copy_in)(struct trib_engine *e, struct trib_run *run,
                             struct trib_task *t, const struct trib_chunk *c,
                             struct trib_entry *entry);
    trib_status_t (*copy)(struct trib_engine *e, struct trib_run *run,
                          struct trib_task *t, const struct trib_chunk *c);

    /* For checksums. NULL: the data of frames is in their slots. */
    /** sent - return the data of the frame that fill made. */
    struct trib_bytes (*sent)(const struct trib_engine *e, const struct trib_run *run,
                              const struct trib_task *t, const struct trib_chunk *c);
    /** received - return the data of t's frame; it is not in the slot. */
    struct trib_bytes (*received)(struct trib_engine *e, const struct trib_run *run,
                                  const struct trib_task *t,
                                  const struct trib_contrib *from,
                                  const struct trib_chunk *c);
};

extern const struct trib_payload_ops trib_payload_raw;
extern const struct trib_payload_ops trib_payload_blocks;
extern const struct trib_payload_ops trib_payload_coded;
extern const struct trib_payload_ops trib_payload_linear;
extern const struct trib_payload_ops trib_payload_agreement;
extern const struct trib_payload_ops trib_payload_pairs;

/**
 * trib_payload_prepare - create run->payload and choose run->payload_ops.
 *
 * The run's neighbors are connected. Call trib_payload_dispose in any case.
 * errors   TRIB_ERR_NO_MEMORY, and errors of starting workers
 */
trib_status_t trib_payload_prepare(struct trib_engine *e, struct trib_run *run);
void trib_payload_dispose(struct trib_run *run);

/**
 * trib_payload_bytes - return an upper bound, slightly high, of the bytes that
 * trib_payload_prepare allocates for an aggregator's run.
 *
 * results_out  growth of the memory that remains after the run is freed
 *              (trib_agg_results)
 */
uint64_t trib_payload_bytes(const struct trib_engine *e, const struct trib_run *run,
                            uint64_t *results_out);

/** trib_payload_is_plain - return true if the run moves raw elements whose sums need
 * only their sources. */
bool trib_payload_is_plain(const struct trib_run *run);

/** trib_payload_of - return the payload of a task. */
static inline const struct trib_payload_ops *trib_payload_of(const struct trib_run *run,
                                                             const struct trib_task *t)
{
    return run->payload_ops[trib_share_task(run, t)];
}

/** trib_payload_count_out - count the data that a task sends: its bytes, and the bytes
 * of the same elements without a codec. */
static inline void trib_payload_count_out(struct trib_engine *e,
                                          const struct trib_task *t, size_t dense,
                                          size_t bytes)
{
    const uint64_t mine = t->flags & TRIB_TASK_INPUT ? ~UINT64_C(0) : 0;

    e->stats.dense_bytes += dense;
    e->stats.payload_bytes += bytes;
    e->stats.input_dense_bytes += dense & mine;
    e->stats.input_bytes += bytes & mine;
}

/** trib_payload_count_in - count received frames of the vector. */
static inline void trib_payload_count_in(struct trib_engine *e,
                                         const struct trib_run *run,
                                         const struct trib_chunk *c, uint64_t frames)
{
    e->stats.received_dense_bytes += frames * c->n * run->desc.element;
}

#endif
