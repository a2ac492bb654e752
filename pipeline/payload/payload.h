/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The payload of a task, as a table: raw elements, code words, words that add, or the
 * agreement. It is chosen when a run is prepared; the engine calls through it and knows
 * no kind.
 */
#ifndef PIPELINE_PAYLOAD_PAYLOAD_H
#define PIPELINE_PAYLOAD_PAYLOAD_H

#include "pipeline/engine/chunk.h"
#include "pipeline/engine/engine_state.h"

/* The bytes that a frame stands for. */
struct trib_bytes {
    const uint8_t *at; /* NULL: they are in the frame's slot, or cannot be */
    size_t n;
};

/* A function that can fail returns an error if a peer's frame is not valid. An own
 * trouble marks the engine (failure.h) and is otherwise no error. */
struct trib_payload_ops {
    const char *name;

    /** begin - an operation begins, before its links are looked at; false: the engine
     * has failed. */
    bool (*begin)(struct trib_engine *e, struct trib_run *run);
    /** end - an operation is over: nobody uses its memory any more. */
    void (*end)(struct trib_engine *e, struct trib_run *run);

    /** chunk - what t moves in its next round. */
    struct trib_chunk (*chunk)(const struct trib_run *run, const struct trib_task *t);
    /** room - bytes that a SEND may put into its slot. */
    size_t (*room)(const struct trib_engine *e, const struct trib_run *run,
                   const struct trib_task *t, const struct trib_chunk *c);
    /** ready - may t run, all but its frames? The last question: then t runs now. */
    bool (*ready)(struct trib_engine *e, struct trib_run *run,
                  const struct trib_task *t, const struct trib_chunk *c);

    /** fill - make the frame of a SEND in its entry, all but the publishing. */
    void (*fill)(struct trib_engine *e, struct trib_run *run, struct trib_task *t,
                 const struct trib_chunk *c, struct trib_entry *entry);
    /** zcopy_to_slot - copy what the frame was to be written out of, and the chunks
     * after it: the transport cannot read it. NULL: frames are never written out of the
     * caller's memory. */
    void (*zcopy_to_slot)(struct trib_engine *e, struct trib_run *run,
                          struct trib_task *t, const struct trib_chunk *c);
    /** reduce - the k-ary sum; all frames are there, and of this operation. */
    trib_status_t (*reduce)(struct trib_engine *e, struct trib_run *run,
                            struct trib_task *t, const struct trib_chunk *c);
    trib_status_t (*copy_in)(struct trib_engine *e, struct trib_run *run,
                             struct trib_task *t, const struct trib_chunk *c,
                             struct trib_entry *entry);
    trib_status_t (*copy)(struct trib_engine *e, struct trib_run *run,
                          struct trib_task *t, const struct trib_chunk *c);

    /* For checksums. NULL: frames stand for what is in their slots. */
    /** sent - what the frame that fill made stands for. */
    struct trib_bytes (*sent)(const struct trib_engine *e, const struct trib_run *run,
                              const struct trib_task *t, const struct trib_chunk *c);
    /** received - what the frame that t takes stands for; it is not in the slot. */
    struct trib_bytes (*received)(struct trib_engine *e, const struct trib_run *run,
                                  const struct trib_task *t,
                                  const struct trib_contrib *from,
                                  const struct trib_chunk *c);
};

extern const struct trib_payload_ops trib_payload_raw;
extern const struct trib_payload_ops trib_payload_coded;
extern const struct trib_payload_ops trib_payload_linear;
extern const struct trib_payload_ops trib_payload_agreement;

/**
 * trib_payload_prepare - make run->payload, and choose run->payload_ops.
 *
 * The neighbors of the run are connected. trib_payload_dispose follows in any case.
 * errors   TRIB_ERR_NO_MEMORY, and what starting workers gives
 */
trib_status_t trib_payload_prepare(struct trib_engine *e, struct trib_run *run);
void trib_payload_dispose(struct trib_run *run);

/**
 * trib_payload_bytes - what trib_payload_prepare will allocate for an aggregator's
 * run, or a little more.
 *
 * values_out  bytes by which memories grow that stay when the run is gone (trib_values)
 */
uint64_t trib_payload_bytes(const struct trib_engine *e, const struct trib_run *run,
                            uint64_t *values_out);

/** trib_payload_is_plain - true if the run moves raw elements whose sums need no state
 * beside their sources. */
bool trib_payload_is_plain(const struct trib_run *run);

/** trib_payload_of - what a task of a run moves. */
static inline const struct trib_payload_ops *trib_payload_of(const struct trib_run *run,
                                                             const struct trib_task *t)
{
    return run->payload_ops[trib_share_task(run, t)];
}

/** trib_payload_count_in - so many frames of the vector's elements are received. */
static inline void trib_payload_count_in(struct trib_engine *e,
                                         const struct trib_run *run,
                                         const struct trib_chunk *c, uint64_t frames)
{
    e->stats.received_dense_bytes += frames * c->n * run->desc.element;
}

#endif
