/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Quantisers that work on buckets: a head stores what the values of a bucket share, and
 * each value is a code of 1 to 8 bits.
 *
 *     | ceil(n / bucket) heads of `head` bytes | n packed codes of `bits` bits |
 *
 * Codes are packed as in bitpack.h. A bucket has a multiple of 8 values, so its codes
 * start at a whole byte. Such a quantiser is a const struct trib_bucketing; the
 * functions below are its other operations.
 */
#ifndef COMPRESS_QUANTISE_BUCKETS_H
#define COMPRESS_QUANTISE_BUCKETS_H

#include "compress/stages.h"

struct trib_buckets {
    size_t bucket; /* values */
    size_t head; /* bytes */
    int bits; /* per code */
};

union trib_bucket_params {
    struct trib_qsgd_args levels;
    struct trib_natural_args octaves;
    struct trib_pair pair;
    struct trib_f8 f8;
    struct trib_dither_args powers;
};

struct trib_bucketing {
    size_t head; /* bytes */
    int bits; /* per code; 0: TRIB_PARAM_BITS */
    bool undivided; /* one bucket; else TRIB_PARAM_BUCKET values each */
    /* parameters that do not depend on the bucket */
    union trib_bucket_params (*params)(const struct trib_codec *c);
    /* Write the head of n values. magnitude: the bits of their largest magnitude.
     * Return false if all codes are 0. */
    bool (*measure)(const struct trib_codec *c, const float *x, size_t n,
                    uint32_t magnitude, union trib_bucket_params *p, uint8_t *head_out);
    void (*encode)(const struct trib_kernels *k, uint8_t *codes, const float *x,
                   size_t n, const uint32_t keys[2], union trib_bucket_params *p);
    /* parameters from a head, which may be any bytes */
    void (*open)(const uint8_t *head, union trib_bucket_params *p);
    void (*decode)(const struct trib_kernels *k, float *x, const uint8_t *codes,
                   size_t n, const union trib_bucket_params *p);
    void (*add)(const struct trib_kernels *k, float *acc, const uint8_t *codes,
                size_t n, float weight, union trib_bucket_params *p);
};

/* Operations of such a quantiser. */
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

/* Define encode, decode and add of a rule with the kernels name_encode, name_decode and
 * name_add, which accept the member `args` of the parameters. */
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

/* For packs with another layout of codes: heads, and one-byte codes. */
struct trib_buckets trib_buckets_layout(const struct trib_codec *c);
size_t trib_buckets_heads(const struct trib_buckets *b, size_t n); /* bytes */
void trib_buckets_quantise(const struct trib_codec *c, const struct trib_encode *in,
                           uint8_t *heads_out, uint8_t *codes_out);

/* Decodes codes in order; a call must not cross the end of a bucket. */
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

/** trib_bucket_l2 - return the l2 norm of n finite values, at most FLT_MAX. */
float trib_bucket_l2(const struct trib_codec *c, const float *x, size_t n);

/** trib_bucket_clip - clip a norm to TRIB_PARAM_CLIP times the root mean square. */
float trib_bucket_clip(const struct trib_codec *c, const float *x, size_t n,
                       float norm);

/** trib_bucket_clip_error - return w for values rounded to 0 or +- the clipped norm. */
double trib_bucket_clip_error(const struct trib_codec *c);

/* Write the head of a bucket with a norm by TRIB_PARAM_NORM, in f32. Return false with
 * norm 0 if all values are zero, or NaN if one is not finite. Otherwise the norm is at
 * least the largest magnitude and TRIB_SMALLEST_NORM. */
bool trib_bucket_measure_norm(const struct trib_codec *c, const float *x, size_t n,
                              uint32_t magnitude, float *norm_out, uint8_t *head_out);

/** trib_bucket_scale - return about 1 / norm, such that norm times it is not below
 * 1. */
float trib_bucket_scale(float norm);

/* dither.c, for dither: return why c's levels are not possible, or NULL; fill its
 * tables. */
const char *trib_dither_refusal(const struct trib_codec *c);
void trib_dither_prepare(struct trib_codec *c);

#endif
