/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Second part of kernels_scalar.h: kernels used by codecs only.
 */
#ifndef COMPRESS_KERNELS_KERNELS_SCALAR_CODEC_H
#define COMPRESS_KERNELS_KERNELS_SCALAR_CODEC_H

#include "compress/kernels/bitpack.h"
#include "compress/kernels/kernels_scalar.h"

KERNEL uint32_t magnitude_of(float v)
{
    return bits_of(v) & 0x7fffffffu;
}

KERNEL uint32_t max_magnitude_scalar(const float *x, size_t n)
{
    uint32_t m = 0;
    for (size_t i = 0; i < n; i++)
        m = magnitude_of(x[i]) > m ? magnitude_of(x[i]) : m;
    return m;
}

enum { SQUARE_LANES = 16 };

/* add lanes pairwise by halves: 0+8, 1+9 … then 0+4 … */
KERNEL float fold_lanes(float lane[SQUARE_LANES])
{
    for (int half = SQUARE_LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

KERNEL float sum_squares_scalar(const float *x, size_t n)
{
    float lane[SQUARE_LANES] = {0};
    for (size_t i = 0; i < n; i++)
        lane[i % SQUARE_LANES] += x[i] * x[i];
    return fold_lanes(lane);
}

KERNEL bool has_sign(float x)
{
    return bits_of(x) >> 31;
}

KERNEL void sums_by_sign_scalar(const float *x, size_t n, struct trib_sums *out)
{
    float positive[SQUARE_LANES] = {0}, negative[SQUARE_LANES] = {0};
    size_t n_negative = 0;
    for (size_t i = 0; i < n; i++) {
        float *lane = has_sign(x[i]) ? negative : positive;
        lane[i % SQUARE_LANES] += x[i];
        n_negative += has_sign(x[i]);
    }
    out->positive = fold_lanes(positive);
    out->negative = fold_lanes(negative);
    out->n_negative = n_negative;
}

KERNEL void signs_encode_scalar(uint8_t *codes, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        codes[i] = has_sign(x[i]);
}

KERNEL void pair_decode_scalar(float *x, const uint8_t *codes, size_t n,
                               const struct trib_pair *pair)
{
    for (size_t i = 0; i < n; i++)
        x[i] = pair->value[codes[i] & 1];
}

KERNEL void pair_add_scalar(float *acc, const uint8_t *codes, size_t n,
                            const struct trib_pair *pair)
{
    for (size_t i = 0; i < n; i++)
        acc[i] += pair->weight * pair->value[codes[i] & 1];
}

KERNEL size_t select_at_least_scalar(const float *x, size_t n, uint32_t threshold,
                                     uint32_t *positions_out)
{
    size_t m = 0;
    assert(n <= UINT32_MAX);
    for (size_t i = 0; i < n; i++) {
        positions_out[m] = (uint32_t)i;
        m += magnitude_of(x[i]) >= threshold;
    }
    return m;
}

KERNEL void drop_not_finite_scalar(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = magnitude_of(x[i]) < 0x7f800000u ? x[i] : 0.0f;
}

KERNEL uint32_t random_hash(uint32_t i, const uint32_t key[2])
{
    uint32_t h = i * 0x9e3779b9u + key[0];
    h ^= h >> 16;
    h *= 0x7feb352du;
    h ^= h >> 15;
    h += key[1];
    return h * 0x846ca68bu;
}

/* clang-format off */
/* Loops of a codec with one-byte codes: name_code encodes element i, name_value decodes
 * a code. */
#define SCALAR_CODEC(name, args) \
    KERNEL void name##_encode_scalar_from(uint8_t *codes, const float *x, size_t n, \
                                          size_t first, const struct args *a) \
    { \
        assert(name##_is_valid(a) && n <= UINT32_MAX); /* i is hashed as 32 bits */ \
        for (size_t i = first; i < n; i++) \
            codes[i] = (uint8_t)name##_code(x[i], (uint32_t)i, a); \
    } \
    KERNEL void name##_decode_scalar(float *x, const uint8_t *codes, size_t n, \
                                     const struct args *a) \
    { \
        for (size_t i = 0; i < n; i++) \
            x[i] = name##_value(codes[i], a); \
    } \
    KERNEL void name##_add_scalar(float *acc, const uint8_t *codes, size_t n, \
                                  const struct args *a) \
    { \
        for (size_t i = 0; i < n; i++) \
            acc[i] += a->weight * name##_value(codes[i], a); \
    }
/* clang-format on */

/* Return true if `sign` is the bit above codes of levels up to `highest`. */
KERNEL bool sign_is_above(uint32_t sign, uint32_t highest)
{
    return sign > highest && sign <= 128 && (sign & (sign - 1)) == 0;
}

KERNEL bool qsgd_is_valid(const struct trib_qsgd_args *l)
{
    return l->highest > 0 && sign_is_above(l->sign, l->highest);
}

KERNEL uint8_t qsgd_code(float x, uint32_t i, const struct trib_qsgd_args *l)
{
    const float u = (float)(random_hash(i, l->key) >> 8) * 0x1p-24f;
    const float y = float_of(magnitude_of(x)) * l->scale + u;
    const uint32_t level = (uint32_t)y;
    return (uint8_t)((level < l->highest ? level : l->highest) |
                     (bits_of(x) >> 31 ? l->sign : 0u));
}

/* A code from the wire may exceed the highest level; its value is then larger. */
KERNEL float qsgd_value(uint8_t code, const struct trib_qsgd_args *l)
{
    const float level = (float)(code & (l->sign - 1u));
    const float v = level * (1.0f / (float)l->highest) * l->norm;
    return float_of(bits_of(v) ^ (code & l->sign ? 0x80000000u : 0u));
}

SCALAR_CODEC(qsgd, trib_qsgd_args)

KERNEL bool natural_is_valid(const struct trib_natural_args *o)
{
    return o->highest > 0 && sign_is_above(o->sign, (uint32_t)o->highest);
}

KERNEL uint8_t natural_code(float x, uint32_t i, const struct trib_natural_args *o)
{
    const uint32_t h = (random_hash(i, o->key) & o->random_mask) | o->fixed;
    const float y = float_of(magnitude_of(x)) * o->scale;
    int32_t level;
    if ((int32_t)(bits_of(y) >> 23) > o->base) {
        level = (int32_t)((bits_of(y) + (h >> 9)) >> 23) - o->base;
        level = level < o->highest ? level : o->highest;
    } else {
        level = (int32_t)(y * o->steps + (float)(h >> 8) * 0x1p-24f);
    }
    return (uint8_t)((uint32_t)level | (bits_of(x) >> 31 ? o->sign : 0u));
}

/* Defined for any code and base: an exponent out of range loses its upper bits. */
KERNEL float natural_value(uint8_t code, const struct trib_natural_args *o)
{
    const uint32_t level = code & (o->sign - 1u);
    const uint32_t bits = (level + (uint32_t)o->base) << 23 & 0x7f800000u;
    const float v = float_of(level ? bits : 0u) * o->norm;
    return float_of(bits_of(v) ^ (code & o->sign ? 0x80000000u : 0u));
}

SCALAR_CODEC(natural, trib_natural_args)

#endif
