/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Codes of buckets.h in as many bytes as they need: the packs "omega" and "entropy".
 *
 *     byte 0     how the codes are written: enum trib_codes_kind
 *     then       the heads of the buckets
 *     then       the codes
 *
 * n = 0 is no bytes at all. Whatever the pack, codes that would not take fewer bytes
 * than at their fixed width are written so: at most 1 byte is lost. A code is a sign
 * above a level, and level 0 has none: minus zero becomes zero.
 */
#ifndef COMPRESS_PACK_VARLEN_H
#define COMPRESS_PACK_VARLEN_H

#include "compress/pack/elias_omega.h"
#include "compress/stages.h"

enum trib_codes_kind {
    TRIB_CODES_BITS, /* bitpack.h */
    TRIB_CODES_GAPS, /* elias_omega.c */
    TRIB_CODES_DENSE,
    TRIB_CODES_GROUPS, /* entropy.c */
    TRIB_CODES_KINDS
};

enum { TRIB_GROUP = 16384 }; /* codes that entropy.c codes together */

/* Codes to write. */
struct trib_codes {
    uint8_t *codes; /* one a byte; room for 8 more, which may be changed */
    size_t n;
    int bits; /* of a code; the highest is the sign */
    void *work; /* as much as the pack wants */
};

/* A pack: fills what `variable` of a struct trib_pack points to. */
struct trib_varlen {
    size_t work; /* bytes */
    /* fewer than `limit` bytes; 0: it would take more */
    size_t (*write)(const struct trib_codes *in, uint8_t *dst, size_t limit,
                    enum trib_codes_kind *kind_out);
};

extern const struct trib_varlen trib_varlen_omega;
extern const struct trib_varlen trib_varlen_entropy;

/* Reads codes in order, a piece at a time. All 0 but for the first four, and group. */
struct trib_code_reader {
    struct trib_bit_reader stream;
    size_t n;
    int bits; /* of a code */
    size_t known; /* codes read from the stream, zeros of a gap among them */
    size_t zeros; /* GAPS: to come before the next that is not 0 */
    uint8_t next; /* GAPS: that one; 0: none */
    bool ended; /* GAPS */
    size_t taken; /* GROUPS: codes of the group, of those held */
    size_t held;
    uint8_t group[TRIB_GROUP + 8];
};

/* …_read: the next count codes, false: these are none. …_done: all n were read, and
 * nothing follows them. */
bool trib_omega_gaps_read(struct trib_code_reader *r, uint8_t *codes, size_t count);
bool trib_omega_gaps_done(struct trib_code_reader *r);
bool trib_omega_dense_read(struct trib_code_reader *r, uint8_t *codes, size_t count);
bool trib_omega_dense_done(struct trib_code_reader *r);
bool trib_groups_read(struct trib_code_reader *r, uint8_t *codes, size_t count);

/* The codec's side: sizes, encode, decode. */
size_t trib_varlen_bound(const struct trib_codec *c, size_t n);
size_t trib_varlen_scratch(const struct trib_codec *c, size_t n);
size_t trib_varlen_encode(const struct trib_codec *c, const struct trib_encode *in,
                            uint8_t *dst);
trib_status_t trib_varlen_decode(const struct trib_codec *c,
                                   const struct trib_decode *d);

#endif
