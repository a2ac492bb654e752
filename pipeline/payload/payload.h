/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The payload of a task, as a table: raw elements, those of listed blocks, code words,
 * code words that add, (index, value) pairs, or the agreement. trib_payload_prepare
 * chooses it; the engine calls through it and knows no kind.
 */
#ifndef PIPELINE_PAYLOAD_PAYLOAD_H
#define PIPELINE_PAYLOAD_PAYLOAD_H

#include "pipeline/engine/chunk.h"
#include "pipeline/engine/engine_state.h"
#include "pipeline/payload/payload_blocks.h"

/* The bytes that a frame stands for. */
struct trib_bytes {
    const uint8_t *at; /* NULL: the bytes are in the frame's slot, or the frame is not
                        * valid */
    size_t n;
};

/* A function that can fail returns an error if a peer's frame is not valid. A trouble
 * of this rank marks the engine (failure.h) and is no error. */
struct trib_payload_ops {
    const char *name;

    /** begin - begin an operation, before its links are looked at; false if the engine
     * has failed. */
    bool (*begin)(struct trib_engine *e, struct trib_run *run);
    /** end - end an operation: from now on nobody uses its memory. */
    void (*end)(struct trib_engine *e, struct trib_run *run);

    /** chunk - the chunk that t moves in its next round. */
    struct trib_chunk (*chunk)(const struct trib_run *run, const struct trib_task *t);
    /** room - the number of bytes that a SEND may put into its slot. */
    size_t (*room)(const struct trib_engine *e, const struct trib_run *run,
                   const struct trib_task *t, const struct trib_chunk *c);
    /** ready - true if t may run as far as the payload goes. The engine asks last: then
     * t runs now. */
    bool (*ready)(struct trib_engine *e, struct trib_run *run,
                  const struct trib_task *t, const struct trib_chunk *c);

    /** fill - make the frame of a SEND in its entry; the engine publishes it. */
    void (*fill)(struct trib_engine *e, struct trib_run *run, struct trib_task *t,
                 const struct trib_chunk *c, struct trib_entry *entry);
    /** zcopy_to_slot - copy elements to the slot, for this frame and those after it,
     * because the transport cannot read the caller's memory. NULL: no frame is written
     * out of that. */
    void (*zcopy_to_slot)(struct trib_engine *e, struct trib_run *run,
                          struct trib_task *t, const struct trib_chunk *c);
    /** reduce - make the k-ary sum; all frames are there, and of this operation. */
    trib_status_t (*reduce)(struct trib_engine *e, struct trib_run *run,
                            struct trib_task *t, const struct trib_chunk *c);
    trib_status_t (*copy_in)(struct trib_engine *e, struct trib_run *run,
                             struct trib_task *t, const struct trib_chunk *c,
                             struct trib_entry *entry);
    trib_status_t (*copy)(struct trib_engine *e, struct trib_run *run,
                          struct trib_task *t, const struct trib_chunk *c);

    /* For checksums. NULL: frames stand for what is in their slots. */
    /** sent - the bytes for which the frame stands that fill made. */
    struct trib_bytes (*sent)(const struct trib_engine *e, const struct trib_run *run,
                              const struct trib_task *t, const struct trib_chunk *c);
    /** received - the bytes for which the frame stands that t takes; they are not in
     * the slot. */
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
 * trib_payload_prepare - make run->payload, and choose run->payload_ops.
 *
 * The neighbors of the run are connected. trib_payload_dispose follows in any case.
 * errors   TRIB_ERR_NO_MEMORY, and what starting workers gives
 */
trib_status_t trib_payload_prepare(struct trib_engine *e, struct trib_run *run);
void trib_payload_dispose(struct trib_run *run);

/**
 * trib_payload_bytes - the bytes that trib_payload_prepare will allocate for an
 * aggregator's run, or a little more.
 *
 * results_out  bytes by which memories grow that stay when the run is gone
 *              (trib_agg_results)
 */
uint64_t trib_payload_bytes(const struct trib_engine *e, const struct trib_run *run,
                            uint64_t *results_out);

/** trib_payload_is_plain - true if the run moves raw elements whose sums need no state
 * beside their sources. */
bool trib_payload_is_plain(const struct trib_run *run);

/** trib_payload_of - the payload of a task. */
static inline const struct trib_payload_ops *trib_payload_of(const struct trib_run *run,
                                                             const struct trib_task *t)
{
    return run->payload_ops[trib_share_task(run, t)];
}

/** trib_payload_count_out - count what a task sends: its bytes, and those of the same
 * elements without a codec. */
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

/** trib_payload_count_in - count received frames of the vector's elements. */
static inline void trib_payload_count_in(struct trib_engine *e,
                                         const struct trib_run *run,
                                         const struct trib_chunk *c, uint64_t frames)
{
    e->stats.received_dense_bytes += frames * c->n * run->desc.element;
}

#endif
