/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frame header: 32 bytes in front of everything that one rank sends to another.
 *
 *   0        2    3      4       8        12      16             24          28      32
 *   | magic  |kind|source| seq   | chunk  | bytes | count        | signature | digest |
 *   | "TB"   | u8 | u8   | u32   | u32    | u32   | u64          | u32       | u32    |
 *
 * Little-endian; magic's second byte is the version. Every frame describes the whole
 * operation (count, signature, digest), so that two ranks which disagree find out at
 * the first frame that they exchange, whatever it was meant for.
 */
#ifndef PIPELINE_LINK_FRAME_H
#define PIPELINE_LINK_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include <tributary/coll.h>

#define TRIB_FRAME_MAGIC 0x0254u /* 'T', version 2 */
#define TRIB_ROOT_NONE 0xffffu

enum trib_frame_kind {
    TRIB_FRAME_DATA = 1, /* payload follows: raw elements or a code word */
    TRIB_FRAME_ADVERT, /* payload (advert.h): where the sender's buffers are */
    TRIB_FRAME_GET, /* no payload: read the elements from the opened buffer */
    TRIB_FRAME_PUT_DONE, /* no payload: the elements are already in the receive
                          * buffer */
    TRIB_FRAME_SUM, /* payload: a result as float32, see agg_sum.h */
    TRIB_FRAME_KIND_END,
};

struct trib_frame {
    uint16_t magic;
    uint8_t kind;
    uint8_t source; /* bit 0, GET: enum trib_source, which of the opened buffers; above
                     * it, of a sum that is not finished: what it was divided by, see
                     * narrow.h */
    uint32_t seq;       /* number of the operation on this communicator */
    uint32_t chunk;     /* number of the chunk in the whole vector */
    uint32_t bytes;     /* size of the payload */
    uint64_t count;     /* elements, as in trib_desc_t (48 bits); above them the plan's
                         * step */
    uint32_t signature; /* coll, dtype, op, feed, root, or which plan:
                         * trib_frame_signature */
    uint32_t digest; /* codec (12 bits), feedback (6), algorithm (6), chunk size (8);
                      * with an aggregator the plan's number in place of the two in the
                      * middle */
};

enum trib_source {
    TRIB_SOURCE_SEND,
    TRIB_SOURCE_RECV,
};

static inline enum trib_source trib_frame_source(const struct trib_frame *f)
{
    return (enum trib_source)(f->source & 1);
}

static inline uint8_t trib_frame_divided(const struct trib_frame *f)
{
    return f->source >> 1;
}

static inline void trib_frame_set_divided(struct trib_frame *f, uint8_t code)
{
    f->source = (uint8_t)(f->source | code << 1);
}

_Static_assert(sizeof(struct trib_frame) == 32, "the frame header is 32 bytes");

/* Packs what ranks must agree on; leaving a communicator counts as an operation. */
struct trib_frame_op {
    trib_coll_t coll;
    trib_dtype_t dtype;
    trib_op_t op;
    trib_feed_t feed;
    uint32_t root; /* TRIB_ROOT_NONE where there is none */
    int leaving;   /* the barrier of trib_free_comm */
};

enum {
    TRIB_FRAME_COUNT_BITS = 48,
    TRIB_FRAME_ROOT_AT = 15, /* in the signature, 16 bits */
};

/* The count of an operation whose blocks have lengths that only their two ranks know: a
 * frame of a block has the block's. */
#define TRIB_FRAME_COUNT_LISTED ((UINT64_C(1) << TRIB_FRAME_COUNT_BITS) - 1)

static inline uint64_t trib_frame_count(const struct trib_frame *f)
{
    return f->count & ((UINT64_C(1) << TRIB_FRAME_COUNT_BITS) - 1);
}

/* The step of a plan with a codec, modulo 65536; else 0. */
static inline uint32_t trib_frame_step(const struct trib_frame *f)
{
    return (uint32_t)(f->count >> TRIB_FRAME_COUNT_BITS);
}

/**
 * trib_frame_stamp - set which start of which plan this is, for plans that keep a
 * state.
 *
 * f        the template of the operation
 * step     of the plan; 16 bits travel
 * plan     of its key; 16 bits travel, in the place of the root, where there is none
 */
void trib_frame_stamp(struct trib_frame *f, uint32_t step, uint32_t plan);

/** trib_frame_take_stamp - an aggregator takes both from the first frame of an
 * operation. */
void trib_frame_take_stamp(struct trib_frame *mine, const struct trib_frame *theirs);

uint32_t trib_frame_signature(const struct trib_frame_op *op);
struct trib_frame_op trib_frame_op(uint32_t signature);

/** trib_frame_digest - the digest of a frame from those of its parts. */
uint32_t trib_frame_digest(uint32_t codec, uint32_t feedback, uint32_t algorithm,
                           uint32_t chunk);

/* The number of a plan of an aggregator, 0 to 4095, takes the place of feedback and
 * algorithm. */
static inline uint32_t trib_frame_digest_of_plan(uint32_t codec, uint32_t plan,
                                                 uint32_t chunk)
{
    return trib_frame_digest(codec, plan >> 6, plan, chunk);
}

static inline uint32_t trib_frame_plan(uint32_t digest)
{
    return digest >> 8 & 0xfff;
}

/**
 * trib_frame_check - check that a received frame belongs to the operation of mine.
 *
 * mine     the template of the local operation: magic, seq, count, signature, digest
 * peer     the rank that sent it, for the sentence
 * self     the local rank, for the sentence
 * text     receives who differs and how, when it does
 * returns  TRIB_OK, TRIB_ERR_MISMATCH, TRIB_ERR_PROTOCOL (not a frame of this version)
 */
trib_status_t trib_frame_check(const struct trib_frame *mine,
                               const struct trib_frame *theirs, int self, int peer,
                               char *text, size_t bytes);

/** trib_frame_same - true if a frame is exactly of mine's operation; the fast check. */
static inline int trib_frame_same(const struct trib_frame *mine,
                                  const struct trib_frame *theirs)
{
    return mine->magic == theirs->magic && mine->seq == theirs->seq &&
           mine->count == theirs->count && mine->signature == theirs->signature &&
           mine->digest == theirs->digest;
}

#endif
