/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Elementwise quantisers: f32 (unchanged), f16 (IEEE binary16), bf16.
 *
 *     wire     n values of 4 or 2 bytes, little-endian
 *     error    f32 none; to nearest even: |C(x) - x| <= 2^-11 |x| (f16, from 2^-14 to
 *              65504; below 2^-25 to 0, from 65520 to Inf) and 2^-8 |x| (bf16);
 *              round=random, to one of the two neighbours: at most twice that, and
 *              E|C(x) - x|^2 <= 2^-22 |x|^2 (f16, from 2^-14 to 65504), 2^-16 |x|^2
 *              (bf16)
 *     bias     nearest: deterministic, so biased for a given x; symmetric.
 *              random: none up to the largest finite number, above it as nearest. f16:
 *              below 2^-48 to 0, as the noise has 24 bits
 *     random   keys from rng_keys.h; kernels.h derives noise from them
 *     state    none. NaN stays NaN, Inf stays Inf
 */
#include "compress/quantise/rng_keys.h"
#include "compress/stages.h"

static size_t bytes_f32(const struct trib_codec *c, size_t n)
{
    (void)c;
    return n * sizeof(float);
}

static size_t bytes_half(const struct trib_codec *c, size_t n)
{
    (void)c;
    return n * sizeof(uint16_t);
}

static void encode_f32(const struct trib_codec *c, const struct trib_values *v,
                       uint8_t *dst)
{
    c->kernels->from_f32[TRIB_F32](dst + v->first * sizeof(float), v->x, v->count);
}

typedef void (*random_fn)(void *dst, const float *src, size_t n, const uint32_t key[2]);

static void encode_random(random_fn fn, const struct trib_values *v, uint8_t *dst)
{
    const uint64_t index = v->key.index + v->first;
    struct trib_rng_keys rng_keys = trib_rng_keys_new(&v->key);
    uint32_t keys[2];
    for (size_t i = 0, same; i < v->count; i += same) {
        same = trib_rng_keys_at(&rng_keys, index + i, keys);
        same = same < v->count - i ? same : v->count - i;
        fn(dst + i * sizeof(uint16_t), v->x + i, same, keys);
    }
}

static bool is_random(const struct trib_codec *c)
{
    return c->param[TRIB_PARAM_ROUND] == TRIB_ROUND_RANDOM;
}

static void decode_f32(const struct trib_codec *c, const struct trib_code *code,
                       float *x)
{
    c->kernels->to_f32[TRIB_F32](x, code->src + code->first * sizeof(float),
                                 code->count);
}

static void add_f32(const struct trib_codec *c, const struct trib_code *code,
                    float weight, float *acc)
{
    c->kernels->axpy_f32(acc, code->src + code->first * sizeof(float), weight,
                         code->count);
}

static double rounding_of(const struct trib_codec *c, double nearest)
{
    return c->param[TRIB_PARAM_ROUND] == TRIB_ROUND_NEAREST ? nearest : 2 * nearest;
}

const struct trib_quantise trib_quantise_f32 = {
    .name = "f32",
    .bytes = bytes_f32,
    .encode = encode_f32,
    .decode = decode_f32,
    .decode_add = add_f32,
    .delta = trib_delta_exact,
};

/* Define the quantiser f16 or bf16, whose numbers are spaced 2 * half at 1. */
#define QUANTISER(type, dtype, half) \
    static void encode_##type(const struct trib_codec *c, const struct trib_values *v, \
                              uint8_t *dst) \
    { \
        uint8_t *to = dst + v->first * sizeof(uint16_t); \
        if (is_random(c)) \
            encode_random(c->kernels->type##_random, v, to); \
        else \
            c->kernels->from_f32[dtype](to, v->x, v->count); \
    } \
    static void decode_##type(const struct trib_codec *c, \
                              const struct trib_code *code, float *x) \
    { \
        c->kernels->to_f32[dtype](x, code->src + code->first * 2, code->count); \
    } \
    static void add_##type(const struct trib_codec *c, const struct trib_code *code, \
                           float weight, float *acc) \
    { \
        c->kernels->axpy_##type(acc, code->src + code->first * 2, weight, \
                                code->count); \
    } \
    static double rounding_##type(const struct trib_codec *c) \
    { \
        return rounding_of(c, half); \
    } \
    const struct trib_quantise trib_quantise_##type = { \
        .name = #type, \
        .params = TRIB_PARAM_BIT(ROUND), \
        .nearest = true, \
        .bytes = bytes_half, \
        .encode = encode_##type, \
        .decode = decode_##type, \
        .decode_add = add_##type, \
        .delta = trib_delta_none, /* over- and underflow have no relative bound */ \
        .rounding = rounding_##type, \
    }

QUANTISER(f16, TRIB_F16, 0x1p-11);
QUANTISER(bf16, TRIB_BF16, 0x1p-8);
