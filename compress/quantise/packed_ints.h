/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encodings that add without decoding: integers on a grid shared by all ranks.
 *
 *     byte 0     bits of a lane: 1 to 8, 16 or 32
 *     byte 1     kind: 0 symbols of one rank, 1 sums, 2 a finished vote
 *     byte 2-3   0
 *     byte 4-7   number of contributions
 *     byte 8-11  divisor of the value (mean), 0: none
 *     then       ceil(n / bucket) heads: the grid of each bucket, f32
 *     then       n lanes, contiguous: up to 8 bits by bitpack.h, else little-endian
 *
 * A finished sum that was quantised again counts as one contribution and has new heads.
 *
 * n = 0 is encoded as no bytes. The ranks agree on the heads (trib_codec_propose), so
 * all chunks of an operation have the same heads, and their lanes the same unit. A
 * symbol is at most `most`, so lanes of m contributions are at most m * most. The sum
 * gets the narrowest lanes that hold it and never carries into a neighbour.
 * trib_codec_for_ranks refuses more ranks than fit into 32 bits.
 */
#ifndef COMPRESS_QUANTISE_PACKED_INTS_H
#define COMPRESS_QUANTISE_PACKED_INTS_H

#include "compress/stages.h"

struct trib_packed_ints {
    size_t bucket; /* values that share a head */
    size_t heads; /* floats of a head */
    int bits; /* per symbol: 1 to 8, or 16 */
    uint32_t most; /* most that a symbol adds to a lane */
    /* 4-bit symbols only: [16] what each symbol adds; NULL: its own value. */
    const uint8_t *adds;
};

enum { TRIB_LANE_HEADS_MAX = 2 };

/* Operations of a quantiser of this kind. */
struct trib_packed_ints_rule {
    int bits; /* per symbol, for layouts shared by several rules; 0: TRIB_PARAM_BITS */
    struct trib_packed_ints (*layout)(const struct trib_codec *c);
    /* Measure n values for their head. The maximum over all ranks counts, so minima are
     * negated. INFINITY throughout if a value is not finite. */
    void (*measure)(const struct trib_codec *c, const float *x, size_t n,
                    float *head_out);
    /* As measure, for x + more, which replaces x, in one pass. NULL: add first, then
     * measure. */
    void (*measure_added)(const struct trib_codec *c, float *x, const float *more,
                          size_t n, float *head_out);
    /* Compute the grid of a head, which may be any floats: for encode, and for lanes of
     * this many contributions. Return false if all symbols are 0. */
    bool (*grid)(const struct trib_codec *c, const float *head, uint32_t contributions,
                 struct trib_shared_scale_args *g_out);
    void (*encode)(const struct trib_codec *c, uint8_t *symbols, const float *x,
                   size_t n, const struct trib_shared_scale_args *g);
    /* As encode, and replace x by its residual, 0 if that is not finite. NULL: compute
     * the residual by decoding. */
    void (*keep)(const struct trib_codec *c, uint8_t *symbols, float *x, size_t n,
                 const struct trib_shared_scale_args *g);
    /* with a rotating transform: measure the values before rotation */
    bool measures_unrotated;
    bool requantises; /* reads TRIB_PARAM_RESULT */
    bool votes; /* symbols are 0 or 1; the final merge keeps the majority */
};

/* Operations of such a quantiser. */
size_t trib_packed_ints_bytes(const struct trib_codec *c, size_t n);
void trib_packed_ints_encode(const struct trib_codec *c, const struct trib_values *v,
                       uint8_t *dst);
void trib_packed_ints_decode(const struct trib_codec *c, const struct trib_code *code,
                       float *x);
void trib_packed_ints_add(const struct trib_codec *c, const struct trib_code *code,
                    float weight, float *acc);

#define TRIB_PACKED_INTS_SLOTS(rule) \
    .bytes = trib_packed_ints_bytes, .encode = trib_packed_ints_encode, \
    .decode = trib_packed_ints_decode, .decode_add = trib_packed_ints_add, \
    .packed_ints = &(rule)

/** trib_packed_ints_keeps - return true if encode can write the residual. */
bool trib_packed_ints_keeps(const struct trib_codec *c);

/** trib_packed_ints_bound - return the bound for the sum of all ranks. */
size_t trib_packed_ints_bound(const struct trib_codec *c, size_t n);

/** trib_packed_ints_fit - return true if a lane of this many contributions fits into 32
 * bits. */
bool trib_packed_ints_fit(const struct trib_codec *c, int ranks);

/** trib_packed_ints_valid - return true if src encodes n values of at most c->ranks
 * contributions. */
bool trib_packed_ints_valid(const struct trib_codec *c, const uint8_t *src, size_t len,
                      size_t n);

/* trib_codec_propose, trib_codec_propose_added and trib_codec_merge of codec.h */
size_t trib_packed_ints_agreed_floats(const struct trib_codec *c, size_t n);
void trib_packed_ints_propose(const struct trib_codec *c, const float *x, size_t n,
                      float *proposal_out);
void trib_packed_ints_propose_added(const struct trib_codec *c, const float *x,
                                    float *residual, size_t n, float *proposal_out);
trib_status_t trib_packed_ints_merge(const struct trib_codec *c,
                                     const struct trib_merge *m, uint8_t *dst,
                                     size_t *len_out);

#endif
