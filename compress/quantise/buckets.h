/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Quantisers that work on buckets: a head says what the values of a bucket have in
 * common, then each is a code of 1 to 8 bits.
 *
 *     | ceil(n / bucket) heads of `head` bytes | n codes of `bits` bits, no holes
 *     (bitpack.h) |
 *
 * A bucket has a multiple of 8 values, so its codes begin at a whole byte. A quantiser
 * of this kind is a const struct trib_bucketing; the functions below are its other
 * slots.
 */
#ifndef COMPRESS_QUANTISE_BUCKETS_H
#define COMPRESS_QUANTISE_BUCKETS_H

#include "compress/stages.h"

struct trib_buckets {
    size_t bucket; /* values */
    size_t head;   /* bytes */
    int bits;      /* of a code */
};

union trib_bucket_params {
    struct trib_qsgd_args levels;
    struct trib_natural_args octaves;
    struct trib_pair pair;
    struct trib_f8 f8;
    struct trib_dither_args powers;
};

struct trib_bucketing {
    struct trib_buckets (*layout)(const struct trib_codec *c);
    /* what does not depend on the bucket */
    union trib_bucket_params (*params)(const struct trib_codec *c);
    /* The head of n values, whose largest magnitude (its bits) is given; false: all
     * codes are 0. */
    bool (*measure)(const struct trib_codec *c, const float *x, size_t n,
                    uint32_t magnitude, union trib_bucket_params *p, uint8_t *head_out);
    void (*encode)(const struct trib_kernels *k, uint8_t *codes, const float *x,
                   size_t n, const uint32_t keys[2], union trib_bucket_params *p);
    /* from a head, which may be any bytes */
    void (*open)(const uint8_t *head, union trib_bucket_params *p);
    void (*decode)(const struct trib_kernels *k, float *x, const uint8_t *codes,
                   size_t n, const union trib_bucket_params *p);
    void (*add)(const struct trib_kernels *k, float *acc, const uint8_t *codes,
                size_t n, float weight, union trib_bucket_params *p);
};

/* The slots of such a quantiser. */
size_t trib_buckets_bytes(const struct trib_codec *c, size_t n);
void trib_buckets_encode(const struct trib_codec *c, const struct trib_values *v,
                         uint8_t *dst);
void trib_buckets_decode(const struct trib_codec *c, const struct trib_code *code,
                         float *x);
void trib_buckets_add(const struct trib_codec *c, const struct trib_code *code,
                      float weight, float *acc);

#define TRIB_BUCKETS_SLOTS(rule) \
    .bytes = trib_buckets_bytes, .encode = trib_buckets_encode, \
    .decode = trib_buckets_decode, .decode_add = trib_buckets_add, .bucketing = &(rule)

/* Defines encode, decode and add of a rule by the kernels name_encode, name_decode and
 * name_add, which take the member `args` of the parameters. */
#define TRIB_BUCKETS_KERNELS(name, args) \
    static void encode(const struct trib_kernels *k, uint8_t *codes, const float *x, \
                       size_t n, const uint32_t keys[2], union trib_bucket_params *p) \
    { \
        memcpy(p->args.key, keys, sizeof p->args.key); \
        k->name##_encode(codes, x, n, &p->args); \
    } \
    static void decode(const struct trib_kernels *k, float *x, const uint8_t *codes, \
                       size_t n, const union trib_bucket_params *p) \
    { \
        k->name##_decode(x, codes, n, &p->args); \
    } \
    static void add(const struct trib_kernels *k, float *acc, const uint8_t *codes, \
                    size_t n, float weight, union trib_bucket_params *p) \
    { \
        p->args.weight = weight; \
        k->name##_add(acc, codes, n, &p->args); \
    }

/* For packs that lay the codes out otherwise: heads, and codes one a byte. */
struct trib_buckets trib_buckets_layout(const struct trib_codec *c);
size_t trib_buckets_heads(const struct trib_buckets *b, size_t n); /* bytes */
void trib_buckets_quantise(const struct trib_codec *c, const struct trib_encode *in,
                           uint8_t *heads_out, uint8_t *codes_out);

/* Values from codes, in order; a call's count must not pass the end of a bucket. */
struct trib_dequantise {
    const struct trib_codec *codec;
    const uint8_t *heads;
    size_t bucket; /* values */
    size_t head; /* bytes */
    size_t at;
    union trib_bucket_params params;
};
struct trib_dequantise trib_dequantise_open(const struct trib_codec *c,
                                            const uint8_t *heads);
void trib_dequantise(struct trib_dequantise *d, const uint8_t *codes, size_t count,
                     float *x);
void trib_dequantise_add(struct trib_dequantise *d, const uint8_t *codes, size_t count,
                         float weight, float *acc);

#define TRIB_SMALLEST_NORM 0x1p-100f

/** trib_bucket_l2 - the l2 norm of n finite values; FLT_MAX where it is larger. */
float trib_bucket_l2(const struct trib_codec *c, const float *x, size_t n);

/** trib_bucket_clip - a norm, but at most TRIB_PARAM_CLIP times the root mean
 * square. */
float trib_bucket_clip(const struct trib_codec *c, const float *x, size_t n,
                       float norm);

/* The head of a bucket that has a norm by TRIB_PARAM_NORM, in f32: 0 if all are zero,
 * NaN if one is not finite; false then. Else not below the largest, nor
 * TRIB_SMALLEST_NORM. */
bool trib_bucket_measure_norm(const struct trib_codec *c, const float *x, size_t n,
                              uint32_t magnitude, float *norm_out, uint8_t *head_out);

/** trib_bucket_scale - about 1 / norm, and norm times it not below 1. */
float trib_bucket_scale(float norm);

/* dither.c, for dither: why c's levels cannot be had, or NULL; its tables. */
const char *trib_dither_refusal(const struct trib_codec *c);
void trib_dither_prepare(struct trib_codec *c);

#endif
