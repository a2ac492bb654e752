/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Variable-length codes of buckets.h: the packs "omega" and "entropy".
 *
 *     byte 0     layout of the codes: enum trib_codes_kind
 *     then       the heads of the buckets
 *     then       the codes
 *
 * n = 0 is encoded as no bytes. Codes that a pack cannot shorten are written at fixed
 * width, so at most 1 byte is lost. A code is a sign above a level; level 0 has no
 * sign, so minus zero becomes zero.
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

enum { TRIB_GROUP = 16384 }; /* codes per group in entropy.c */

/* Codes to write. */
struct trib_codes {
    uint8_t *codes; /* one per byte; room for 8 more, which may be overwritten */
    size_t n;
    int bits; /* per code; the highest is the sign */
    void *work; /* trib_varlen.work bytes */
};

/* Operations of a pack; struct trib_pack.varlen points to them. */
struct trib_varlen {
    size_t work; /* bytes of scratch */
    /* Write fewer than `limit` bytes and return their number; 0: more are needed. */
    size_t (*write)(const struct trib_codes *in, uint8_t *dst, size_t limit,
                    enum trib_codes_kind *kind_out);
};

extern const struct trib_varlen trib_varlen_omega;
extern const struct trib_varlen trib_varlen_entropy;

/* Reads codes in order, piece by piece. Initially zero but for the first four fields;
 * group is uninitialised. */
struct trib_code_reader {
    struct trib_bit_reader stream;
    size_t n;
    int bits; /* per code */
    size_t known; /* codes read from the stream, including the zeros of a gap */
    size_t zeros; /* GAPS: zeros left before the next non-zero code */
    uint8_t next; /* GAPS: that non-zero code; 0: none */
    bool ended; /* GAPS */
    size_t taken; /* GROUPS: codes consumed, of those held */
    size_t held;
    uint8_t group[TRIB_GROUP + 8];
};

/* …_read: read the next count codes; false: invalid. …_done: return true if all n codes
 * were read and nothing follows. */
bool trib_omega_gaps_read(struct trib_code_reader *r, uint8_t *codes, size_t count);
bool trib_omega_gaps_done(struct trib_code_reader *r);
bool trib_omega_dense_read(struct trib_code_reader *r, uint8_t *codes, size_t count);
bool trib_omega_dense_done(struct trib_code_reader *r);
bool trib_groups_read(struct trib_code_reader *r, uint8_t *codes, size_t count);

/* Functions for the codec: sizes, encode, decode. */
size_t trib_varlen_bound(const struct trib_codec *c, size_t n);
size_t trib_varlen_scratch(const struct trib_codec *c, size_t n);
size_t trib_varlen_encode(const struct trib_codec *c, const struct trib_encode *in,
                            uint8_t *dst);
trib_status_t trib_varlen_decode(const struct trib_codec *c,
                                   const struct trib_decode *d);

#endif
