/* SPDX-License-Identifier: BSD-3-Clause */
/* Buckets of bounded.h; private to bounded.c and bounded_merge.c. */
#ifndef COMPRESS_QUANTISE_BOUNDED_PARTS_H
#define COMPRESS_QUANTISE_BOUNDED_PARTS_H

#include "compress/codec_ops.h"
#include "compress/quantise/bounded.h"

enum trib_bounded_form {
    TRIB_BOUNDED_NOTHING,
    TRIB_BOUNDED_INTEGERS,
    TRIB_BOUNDED_FLOATS,
    TRIB_BOUNDED_DOUBLES, /* partial sums of three ranks or more */
};

struct trib_bounded_header {
    uint32_t contributions;
    uint32_t divisor; /* 0: may be added to others */
};

/* A reader of encoded buckets. A peer that shares memory may change the bytes at any
 * time: each length is read once and checked against the end. */
struct trib_bounded_reader {
    const uint8_t *at;
    const uint8_t *end;
    const uint8_t *scales; /* of the buckets; NULL: all have the same scale */
    bool part; /* trib_bounded_is_part */
    struct trib_bounded_header header;
};

/** trib_bounded_is_part - return true if a sum of this many contributions may use
 * float64. */
bool trib_bounded_is_part(const struct trib_codec *c, uint64_t contributions);

/* One encoded bucket. */
struct trib_bounded_bucket {
    enum trib_bounded_form form;
    const uint8_t *content; /* codes or floats */
    uint32_t before;
    uint8_t heads[TRIB_BOUNDED_BUCKET_MAX / TRIB_BOUNDED_BLOCK];
};

/** trib_bounded_bucket_length - return the elements of the bucket that starts at
 * element `at`. */
size_t trib_bounded_bucket_length(const struct trib_codec *c, size_t n, size_t at);

/** trib_bounded_open - read the front of an encoding of n elements, n > 0; false:
 * invalid. */
bool trib_bounded_open(const struct trib_codec *c, const struct trib_encoded *w,
                       size_t n, struct trib_bounded_reader *r_out);

/** trib_bounded_next - read the next bucket, of m elements; false: invalid. */
bool trib_bounded_next(struct trib_bounded_reader *r, size_t m,
                       struct trib_bounded_bucket *out);

/** trib_bounded_grid_of - compute the grid of bucket number b from these scales; false:
 * its scale has no grid. */
bool trib_bounded_grid_of(const struct trib_codec *c, const uint8_t *scales, size_t b,
                          struct trib_bounded_grid *grid_out);

/** trib_bounded_integers - decode the integers of a bucket; q has room for whole
 * blocks. */
void trib_bounded_integers(const struct trib_codec *c,
                           const struct trib_bounded_bucket *b, size_t m, int32_t *q);

/** trib_bounded_integers_write, _floats_write - write a bucket to dst; return its end.
 * q has room for whole blocks. */
uint8_t *trib_bounded_integers_write(const struct trib_codec *c, const int32_t *q,
                                     size_t m, uint8_t *dst);
uint8_t *trib_bounded_floats_write(const float *x, size_t m, uint8_t *dst);

/* The operations of codec_ops.h. */
size_t trib_bounded_bound(const struct trib_codec *c, size_t n);
size_t trib_bounded_whole_bound(const struct trib_codec *c, size_t n);
size_t trib_bounded_agreed_floats(const struct trib_codec *c, size_t n);
void trib_bounded_propose(const struct trib_codec *c, const float *x, size_t n,
                          float *proposal_out);
size_t trib_bounded_encode(const struct trib_codec *c, const struct trib_encode *in,
    uint8_t *dst);
trib_status_t trib_bounded_decode(const struct trib_codec *c,
                                  const struct trib_decode *d);

#endif
