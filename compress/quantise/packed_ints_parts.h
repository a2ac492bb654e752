/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layout of packed integers (packed_ints.h), shared by packed_ints.c (encode, decode)
 * and packed_ints_merge.c (sums).
 */
#ifndef COMPRESS_QUANTISE_PACKED_INTS_PARTS_H
#define COMPRESS_QUANTISE_PACKED_INTS_PARTS_H

#include "base/minmax.h"
#include "compress/kernels/bitpack.h"
#include "compress/quantise/packed_ints.h"
#include "compress/quantise/rng_keys.h"

enum { TRIB_PACKED_HEADER_BYTES = 12, TRIB_PACKED_PIECE = 1024 };
enum { TRIB_PACKED_SYMBOLS, TRIB_PACKED_SUMS, TRIB_PACKED_VOTES, TRIB_PACKED_KINDS };

struct trib_packed_header {
    uint8_t bits;
    uint8_t kind;
    uint16_t zero;
    uint32_t contributions;
    uint32_t divisor;
};
_Static_assert(sizeof(struct trib_packed_header) == TRIB_PACKED_HEADER_BYTES,
               "header has no padding");

static inline const struct trib_packed_ints_rule *trib_packed_rule(
    const struct trib_codec *c)
{
    return c->stages.quantise->packed_ints;
}

static inline size_t trib_packed_head_floats(const struct trib_packed_ints *l, size_t n)
{
    return (n / l->bucket + (n % l->bucket != 0)) * l->heads;
}

/* Return the offset of the lanes. */
static inline size_t trib_packed_lanes_at(const struct trib_packed_ints *l, size_t n)
{
    return TRIB_PACKED_HEADER_BYTES + trib_packed_head_floats(l, n) * sizeof(float);
}

static inline size_t trib_packed_lanes_bytes(size_t n, int bits)
{
    return bits <= 8 ? trib_bits_bytes(n, bits) : n * (size_t)bits / 8;
}

static inline size_t trib_packed_word_bytes(const struct trib_packed_ints *l, size_t n,
                                            int bits)
{
    return n ? trib_packed_lanes_at(l, n) + trib_packed_lanes_bytes(n, bits) : 0;
}

/* Return true if the header fits the length. A peer may have changed the header since
 * its validation. */
static inline bool trib_packed_header_fits(const struct trib_packed_header *h,
                                           const struct trib_packed_ints *l, size_t n,
                                           size_t len)
{
    return trib_packed_word_bytes(l, n, h->bits) == len;
}

/* Return the lane width of such a chunk; 0: no such chunk exists. */
int trib_packed_bits(const struct trib_codec *c, const struct trib_packed_ints *l,
                     int kind, uint32_t contributions);

/* A bucket to encode. */
struct trib_packed_source {
    const float *x;
    float *kept; /* NULL, or x: replaced by the residual */
    float *decoded; /* NULL, or x: replaced by the decoded values */
    size_t n;
    uint64_t index; /* index of the first value in the vector */
};

/* A piece of an encoded chunk, within one bucket: lanes of 8, 16 or 32 bits, and the
 * grid. */
struct trib_packed_piece {
    struct trib_packed_header header; /* of the encoded chunk */
    size_t at; /* offset in the requested range */
    size_t count;
    int bytes; /* per lane */
    const uint8_t *lanes;
    struct trib_shared_scale_args grid;
    uint8_t codes[TRIB_PACKED_PIECE + 8];
};

void trib_packed_encode_symbols(const struct trib_codec *c,
                                const struct trib_packed_ints *l,
                                const struct trib_packed_source *s,
                                struct trib_rng_keys *rng_keys,
                                struct trib_shared_scale_args *g, uint8_t *dst);
/* Encode a bucket of symbols 0, and its residual. */
void trib_packed_encode_nothing(const struct trib_codec *c,
                                const struct trib_packed_ints *l,
                                const struct trib_packed_source *s,
                                struct trib_shared_scale_args *g, uint8_t *dst);

/* Return lanes [at, at + count), one to four bytes each; they may be unpacked into
 * codes. */
const uint8_t *trib_packed_lanes_open(const struct trib_codec *c, const uint8_t *lanes,
                                int bits, size_t at, size_t count, uint8_t *codes);
/* Compute the grid of a bucket with this head, in a chunk with this header. */
void trib_packed_open_grid(const struct trib_codec *c,
                           const struct trib_packed_header *h, const float *head,
                           struct trib_shared_scale_args *g);
void trib_packed_decode_piece(const struct trib_codec *c,
                              const struct trib_packed_piece *p, float *x);

#endif
