/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frame header: 32 bytes in front of everything that one rank sends to another.
 *
 *   0        2    3      4       8        12      16             24          28      32
 *   | magic  |kind|source| seq   | chunk  | bytes | count        | signature | digest |
 *   | "TB"   | u8 | u8   | u32   | u32    | u32   | u64          | u32       | u32    |
 *
 * Little-endian; the second byte of magic is the version. Every frame describes the
 * whole operation (count, signature, digest), so two ranks that disagree detect it at
 * the first frame they exchange, whatever its kind.
 */
#ifndef PIPELINE_LINK_FRAME_H
#define PIPELINE_LINK_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include <tributary/coll.h>

#define TRIB_FRAME_MAGIC 0x0254u /* 'T', version 2 */
#define TRIB_ROOT_NONE 0xffffu

enum trib_frame_kind {
    TRIB_FRAME_DATA = 1, /* payload: raw elements or an encoded chunk */
    TRIB_FRAME_ADVERT, /* payload (advert.h): the locations of the sender's buffers */
    TRIB_FRAME_GET, /* no payload: read the elements from the advertised buffer */
    TRIB_FRAME_PUT_DONE, /* no payload: the elements are in the receive buffer */
    TRIB_FRAME_SUM, /* payload: a result as float32, see agg_sum.h */
    TRIB_FRAME_KIND_END,
};

struct trib_frame {
    uint16_t magic;
    uint8_t kind;
    uint8_t source; /* bit 0, for GET: enum trib_source, one of the advertised buffers;
                     * bits 1 to 7, for a partial sum: code of its divisor, see
                     * narrow.h */
    uint32_t seq;       /* number of the operation on this communicator */
    uint32_t chunk;     /* number of the chunk in the whole vector */
    uint32_t bytes;     /* size of the payload */
    uint64_t count;     /* elements, as in trib_desc_t (48 bits); above: plan's step */
    uint32_t signature; /* coll, dtype, op, feed, and root or plan:
                         * trib_frame_signature */
    uint32_t digest; /* codec (12 bits), feedback (6), algorithm (6), chunk size (8);
                      * with an aggregator, the plan's number replaces feedback and
                      * algorithm */
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

/* The values that ranks must agree on. Freeing a communicator counts as an
 * operation. */
struct trib_frame_op {
    trib_coll_t coll;
    trib_dtype_t dtype;
    trib_op_t op;
    trib_feed_t feed;
    uint32_t root; /* TRIB_ROOT_NONE if the collective has no root */
    int leaving;   /* the barrier of trib_free_comm */
};

enum {
    TRIB_FRAME_COUNT_BITS = 48,
    TRIB_FRAME_ROOT_AT = 15, /* bit of the signature; 16 bits */
};

/* The count of an operation whose block lengths are known only to the two ranks of each
 * block. The frame of a block then has the length of that block. */
#define TRIB_FRAME_COUNT_LISTED ((UINT64_C(1) << TRIB_FRAME_COUNT_BITS) - 1)

static inline uint64_t trib_frame_count(const struct trib_frame *f)
{
    return f->count & ((UINT64_C(1) << TRIB_FRAME_COUNT_BITS) - 1);
}

/* Return the step of a plan with a codec, modulo 65536; else 0. */
static inline uint32_t trib_frame_step(const struct trib_frame *f)
{
    return (uint32_t)(f->count >> TRIB_FRAME_COUNT_BITS);
}

/**
 * trib_frame_stamp - record which start of which plan this is, for plans with state.
 *
 * f        the template of the operation
 * step     of the plan; the frame has its lower 16 bits
 * plan     from the plan's key; the frame has its lower 16 bits, in place of the root
 *          if the collective has none
 */
void trib_frame_stamp(struct trib_frame *f, uint32_t step, uint32_t plan);

/** trib_frame_take_stamp - copy step and plan from the first frame of an operation; for
 * aggregators. */
void trib_frame_take_stamp(struct trib_frame *mine, const struct trib_frame *theirs);

uint32_t trib_frame_signature(const struct trib_frame_op *op);
struct trib_frame_op trib_frame_op(uint32_t signature);

/** trib_frame_digest - combine the digests of the parts into the digest of a frame. */
uint32_t trib_frame_digest(uint32_t codec, uint32_t feedback, uint32_t algorithm,
                           uint32_t chunk);

/* Return a digest in which the number of an aggregator's plan, 0 to 4095, replaces
 * feedback and algorithm. */
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
 * trib_frame_check - check that a received frame belongs to the operation of `mine`.
 *
 * mine     the template of the local operation: magic, seq, count, signature, digest
 * peer     the rank that sent the frame, for the error message
 * self     the local rank, for the error message
 * text     receives which rank differs and how, on error
 * returns  TRIB_OK, TRIB_ERR_MISMATCH, or TRIB_ERR_PROTOCOL (not a frame of this
 *          version)
 */
trib_status_t trib_frame_check(const struct trib_frame *mine,
                               const struct trib_frame *theirs, int self, int peer,
                               char *text, size_t bytes);

/** trib_frame_same - return true if the frame exactly matches the operation of `mine`;
 * the fast check. */
static inline int trib_frame_same(const struct trib_frame *mine,
                                  const struct trib_frame *theirs)
{
    return mine->magic == theirs->magic && mine->seq == theirs->seq &&
           mine->count == theirs->count && mine->signature == theirs->signature &&
           mine->digest == theirs->digest;
}

#endif
