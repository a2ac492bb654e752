/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Code words that add without decoding: integers on a grid that all ranks share.
 *
 *     byte 0     bits of a lane: 1 to 8, 16 or 32
 *     byte 1     kind: 0 symbols of one rank, 1 sums
 *     byte 2-3   0
 *     byte 4-7   contributions in it
 *     byte 8-11  what the value is divided by (mean), 0: by nothing
 *     then       ceil(n / bucket) heads: the grid of each bucket, f32
 *     then       n lanes, no holes: up to 8 bits by bitpack.h, else little-endian
 *
 * A finished sum that was quantised anew is a word of one contribution, with heads of
 * its own.
 *
 * n = 0 is no bytes at all. The heads are what trib_codec_propose agreed on, so words
 * of one operation have the same ones and their lanes are of one unit. A symbol is at
 * most `most`, so the lanes of m contributions are at most m * most: the sum gets the
 * narrowest lanes that hold it, and never carries into its neighbour.
 * trib_codec_for_ranks refuses more ranks than 32 bits hold.
 */
#ifndef COMPRESS_QUANTISE_PACKED_INTS_H
#define COMPRESS_QUANTISE_PACKED_INTS_H

#include "compress/stages.h"

struct trib_packed_ints {
    size_t bucket;      /* values with one head */
    size_t heads;       /* floats of a head */
    int bits;           /* of a symbol: 1 to 8, or 16 */
    uint32_t most;      /* what a symbol adds to a lane at most */
    const uint8_t *adds; /* of 4 bits: [16] what each symbol adds; NULL: itself */
};

enum { TRIB_LANE_HEADS_MAX = 2 };

/* A rule is a const row. */
struct trib_packed_ints_rule {
    int bits; /* for the functions of several rows */
    struct trib_packed_ints (*layout)(const struct trib_codec *c);
    /* Measures n values for their head: the largest over all ranks counts, so numbers
     * that should be small are negated. INFINITY throughout: not all are finite. */
    void (*measure)(const struct trib_codec *c, const float *x, size_t n,
                    float *head_out);
    /* The same of x + more, which x becomes, in one pass; NULL: they are added
     * before. */
    void (*measure_added)(const struct trib_codec *c, float *x, const float *more,
                          size_t n, float *head_out);
    /* The grid of a head, which may be any floats: for encode, and what lanes of so
     * many contributions stand for; false: all symbols are 0. */
    bool (*grid)(const struct trib_codec *c, const float *head, uint32_t contributions,
                 struct trib_shared_scale_args *g_out);
    void (*encode)(const struct trib_codec *c, uint8_t *symbols, const float *x,
                   size_t n, const struct trib_shared_scale_args *g);
    /* The same, and x becomes what the symbols leave of it, 0 for what is not finite;
     * NULL: that is worked out from the word. */
    void (*keep)(const struct trib_codec *c, uint8_t *symbols, float *x, size_t n,
                 const struct trib_shared_scale_args *g);
    bool measures_unrotated; /* with a transform that rotates: what was before it */
    bool requantises; /* reads TRIB_PARAM_RESULT */
    bool votes; /* a symbol is 0 or 1; the last merge leaves what most say */
};

/* The slots of such a quantiser. */
size_t trib_packed_ints_bytes(const struct trib_codec *c, size_t n);
void trib_packed_ints_encode(const struct trib_codec *c, const struct trib_values *v,
                       uint8_t *dst);
void trib_packed_ints_decode(const struct trib_codec *c, const struct trib_code *code,
                       float *x);
void trib_packed_ints_add(const struct trib_codec *c, const struct trib_code *code,
                    float weight, float *acc);

/** trib_packed_ints_keeps - may encode write what is left of the values? */
bool trib_packed_ints_keeps(const struct trib_codec *c);

/** trib_packed_ints_bound - of the sum of all ranks' words. */
size_t trib_packed_ints_bound(const struct trib_codec *c, size_t n);

/** trib_packed_ints_fit - do 32 bits hold a lane of so many contributions? */
bool trib_packed_ints_fit(const struct trib_codec *c, int ranks);

/** trib_packed_ints_valid - is this the word of n values, of at most c->ranks
 * contributions? */
bool trib_packed_ints_valid(const struct trib_codec *c, const uint8_t *src, size_t len,
                      size_t n);

/* codec.h's trib_codec_propose, …_share_added, trib_codec_merge */
size_t trib_packed_ints_agreed_floats(const struct trib_codec *c, size_t n);
void trib_packed_ints_propose(const struct trib_codec *c, const float *x, size_t n,
                      float *proposal_out);
void trib_packed_ints_propose_added(const struct trib_codec *c, const float *x,
                                    float *residual, size_t n, float *proposal_out);
trib_status_t trib_packed_ints_merge(const struct trib_codec *c,
                                     const struct trib_merge *m, uint8_t *dst,
                                     size_t *len_out);

#endif
