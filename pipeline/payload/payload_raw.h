/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moving a chunk: the only file where numbers meet bytes. payload_raw.c has the raw elements,
 * payload_coded.c the code words. Both are called by engine.c once a task may run.
 */
#ifndef PIPELINE_PAYLOAD_PAYLOAD_RAW_H
#define PIPELINE_PAYLOAD_PAYLOAD_RAW_H

#include "pipeline/engine/engine.h"

/* A chunk of one round. */
struct trib_chunk {
    uint32_t index; /* in the whole vector; what frames carry */
    size_t first;   /* element of the vector */
    size_t n;       /* elements, 0 behind the end of a vector that does not divide */
};

#define TRIB_CHUNK_NO_ELEMENTS 0x80000000u /* in index: of no place in the vector */

/* Rounds of the vector; one less than the program's where ranks agree on something first. */
static inline uint32_t trib_run_rounds(const struct trib_run *run)
{
    return run->desc.rounds - (run->desc.share_piece != 0);
}

/* Chunk `chunk` of the round `round` of the vector. */
static inline struct trib_chunk trib_vector_chunk(const struct trib_run *run, uint32_t round,
                                                  uint32_t chunk)
{
    const struct trib_run_desc *d = &run->desc;
    size_t end = d->total;
    struct trib_chunk c;

    if (d->cut == TRIB_CUT_BLOCKED) {
        c.index = round * d->n_chunks + chunk;
        c.first = (size_t)chunk * d->count + (size_t)round * d->piece;
        end = (size_t)(chunk + 1) * d->count;
    } else {
        if (d->op.feed == TRIB_FEED_BACKWARD)
            round = trib_run_rounds(run) - 1 - round;
        c.index = round * d->n_chunks + chunk;
        c.first = (size_t)c.index * d->piece;
    }
    c.first = c.first < end ? c.first : end;
    c.n = end - c.first < d->piece ? end - c.first : d->piece;
    return c;
}

/* The same for a round of the program, which comes one later where ranks agree on something
 * first: round 0 has none. Not for the chunks of that: see payload_agree.h. */
static inline struct trib_chunk trib_run_chunk(const struct trib_run *run,
                                               uint32_t round, uint32_t chunk)
{
    return trib_vector_chunk(run, round - (run->desc.share_piece != 0), chunk);
}

/* Is all of this chunk's own contribution there? */
static inline bool trib_chunk_fed(const struct trib_run *run, const struct trib_chunk *c)
{
    return c->n == 0 || !run->unfed ||
           atomic_load_explicit(&run->unfed[c->index], memory_order_acquire) == 0;
}

/** trib_run_own, trib_run_value - where the own contribution and the value of a chunk are. */
const uint8_t *trib_run_own(const struct trib_run *run, const struct trib_chunk *c);
uint8_t *trib_run_value(const struct trib_run *run, const struct trib_chunk *c);

/** trib_value_at - that of a chunk at a service which has opened the places of some rounds; NULL:
 * it has not. */
const uint8_t *trib_value_at(const struct trib_run *run, const struct trib_view *view,
                             const struct trib_chunk *c);

/** trib_raw_payload - bytes that a SEND of this chunk puts into its slot. */
size_t trib_raw_payload(const struct trib_engine *e, const struct trib_run *run,
                        const struct trib_task *t, const struct trib_chunk *c);
/** trib_raw_sent - the elements that a SEND of this chunk is for. */
const uint8_t *trib_raw_sent(const struct trib_run *run, const struct trib_task *t,
                             const struct trib_chunk *c);
/** trib_raw_source - those that a received frame stands for; NULL: it is not valid. */
const uint8_t *trib_raw_source(const struct trib_engine *e, const struct trib_run *run,
                               const struct trib_member *from, struct trib_cell *cell,
                               const struct trib_chunk *c);
/** trib_raw_fill - make the frame of a SEND in its cell (all but the publishing). */
void trib_raw_fill(struct trib_engine *e, struct trib_run *run, struct trib_task *t,
                   const struct trib_chunk *c, struct trib_cell *cell);
/** trib_raw_copy_carry - what the frame made by fill was to be written out of, where the
 * transport cannot: it is copied, as are the chunks after it. */
void trib_raw_copy_carry(struct trib_engine *e, struct trib_run *run, struct trib_task *t,
                         const struct trib_chunk *c);
/** trib_raw_reduce - the k-ary sum; all members' frames are there and were checked. */
trib_status_t trib_raw_reduce(struct trib_engine *e, struct trib_run *run,
                              struct trib_task *t, const struct trib_chunk *c);
trib_status_t trib_raw_copy_in(struct trib_engine *e, struct trib_run *run,
                               struct trib_task *t, const struct trib_chunk *c,
                               struct trib_cell *cell);
void trib_raw_copy(struct trib_engine *e, struct trib_run *run,
                   const struct trib_chunk *c);

/** trib_own_f32 - the own contribution of a chunk, as the plan's feedback wants it sent: once
 * per operation. */
const float *trib_own_f32(struct trib_engine *e, struct trib_run *run,
                          const struct trib_chunk *c);

/* What an encode works with: that of the engine, or of a worker. */
struct trib_bench {
    float *stage;  /* [piece] */
    void *scratch; /* of the codec */
};

enum trib_own_use {
    TRIB_OWN_UNUSED,
    TRIB_OWN_CONTRIBUTION, /* to a sum */
    TRIB_OWN_RESULT,       /* handed out as it is */
};

/** trib_coded_own_use - what does t make a code word of the own contribution for? */
enum trib_own_use trib_coded_own_use(const struct trib_run *run, const struct trib_task *t);

/**
 * trib_coded_encode_own - the code word of the own contribution: once per operation.
 *
 * thread   any, also while another drives the engine; of one chunk one thread
 * dst      trib_codec_bound(c->n) bytes
 * returns  bytes
 */
uint32_t trib_coded_encode_own(const struct trib_engine *e, const struct trib_run *run,
                               const struct trib_chunk *c, enum trib_own_use use,
                               const struct trib_bench *bench, uint8_t *dst);

/** trib_coded_linear - do the run's words add without decoding? */
bool trib_coded_linear(const struct trib_run *run);

/** trib_coded_bound - the longest code word of the run. */
size_t trib_coded_bound(const struct trib_run *run);

/* The same for code words. */
void trib_coded_fill(struct trib_engine *e, struct trib_run *run, struct trib_task *t,
                     const struct trib_chunk *c, struct trib_cell *cell);
trib_status_t trib_coded_reduce(struct trib_engine *e, struct trib_run *run,
                                struct trib_task *t, const struct trib_chunk *c);
trib_status_t trib_coded_copy_in(struct trib_engine *e, struct trib_run *run,
                                 struct trib_task *t, const struct trib_chunk *c,
                                 struct trib_cell *cell);
trib_status_t trib_coded_copy(struct trib_engine *e, struct trib_run *run,
                              struct trib_task *t, const struct trib_chunk *c);

/**
 * trib_coded_word - the code word that the frame of a COPY_IN brings, or names; NULL: not valid.
 *
 * One that is passed on goes to a store, which has room for what the codec makes of a chunk and
 * no more: nobody decodes it here, so nothing else would find that it is longer.
 */
const uint8_t *trib_coded_word(struct trib_engine *e, const struct trib_run *run,
                               const struct trib_task *t, const struct trib_chunk *c,
                               uint32_t *len_out);

/** trib_store_of - where the next word of t's chunk is to be made, or copied to. */
struct trib_store *trib_store_of(struct trib_run *run, const struct trib_task *t,
                                 const struct trib_chunk *c);

/** trib_coded_own - the own contribution's code word, made by whoever needs it first. */
struct trib_store *trib_coded_own(struct trib_engine *e, struct trib_run *run,
                                  const struct trib_task *t, const struct trib_chunk *c,
                                  bool final);

/** trib_coded_value - the chunk's value out of a code word. */
trib_status_t trib_coded_value(struct trib_engine *e, struct trib_run *run,
                               const struct trib_chunk *c, const uint8_t *word, size_t len);

/** trib_linear_reduce - REDUCE of words that add without decoding. */
trib_status_t trib_linear_reduce(struct trib_engine *e, struct trib_run *run,
                                 struct trib_task *t, const struct trib_chunk *c);

/**
 * trib_coded_store_free - may the store of a chunk be filled for this round?
 *
 * All who take from it must be done with the rounds before: encoding a contribution
 * twice would also count its error twice.
 */
bool trib_coded_store_free(const struct trib_run *run, uint32_t chunk, uint32_t round);

/** trib_coded_store_ready - if t takes from the store: is its word there, or may it be made? */
bool trib_coded_store_ready(const struct trib_run *run, const struct trib_task *t);

#endif
