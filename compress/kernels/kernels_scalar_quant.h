/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Third part of kernels_scalar.h: rounding to 8- and 16-bit floats and to tables.
 */
#ifndef COMPRESS_KERNELS_KERNELS_SCALAR_QUANT_H
#define COMPRESS_KERNELS_KERNELS_SCALAR_QUANT_H

#include "compress/kernels/kernels_scalar_codec.h"

/* A binary float format narrower than f32: how to turn f32 bits into its codes without
 * sign. */
struct narrow {
    int drop; /* mantissa bits dropped */
    uint32_t rebias; /* subtracted from the code */
    uint32_t normal; /* f32 bits of the smallest normal number */
    float steps; /* below that: 1 / distance between two numbers */
    uint32_t most; /* f32 bits of the largest number */
    /* largest code: of Inf, or of the largest number if the format saturates */
    uint32_t top;
    uint32_t quiet; /* added to top for NaN */
};

/* clang-format off */
static const struct narrow narrow_f16 =
    {13, 112u << 10, 0x38800000u, 0x1p24f, 0x477fe000u, 0x7c00u, 0x200u};
static const struct narrow narrow_bf16 =
    {16, 0, 0, 0, 0x7f7f0000u, 0x7f80u, 0x40u};
static const struct narrow narrow_e4m3 =
    {20, 120u << 3, 0x3c800000u, 0x1p9f, 0x43e00000u, 0x7eu, 0};
static const struct narrow narrow_e5m2 =
    {21, 112u << 2, 0x38800000u, 0x1p16f, 0x47600000u, 0x7bu, 0};
/* formats of dtypes, which do not saturate */
static const struct narrow narrow_f8_e4m3 =
    {20, 120u << 3, 0x3c800000u, 0x1p9f, 0x43e00000u, 0x7fu, 0};
static const struct narrow narrow_f8_e5m2 =
    {21, 112u << 2, 0x38800000u, 0x1p16f, 0x47600000u, 0x7cu, 2u};
/* clang-format on */

/* Return the addend that makes truncation round to nearest even. */
KERNEL uint32_t narrow_half(uint32_t u, const struct narrow f)
{
    return (1u << (f.drop - 1)) - 1 + (u >> f.drop & 1u);
}

KERNEL uint32_t narrow_code(uint32_t u, uint32_t add, const struct narrow f)
{
    const uint32_t code = ((u + add) >> f.drop) - f.rebias;
    return (code < f.top ? code : f.top) | (u > 0x7f800000u ? f.quiet : 0u);
}

/* y is not negative. The ulp of 2^23 is 1. */
KERNEL uint32_t narrow_nearest(float y, const struct narrow f)
{
    const uint32_t u = bits_of(y);
    if (u < f.normal)
        return bits_of(y * f.steps + 0x1p23f) - 0x4b000000u;
    return narrow_code(u, narrow_half(u, f), f);
}

KERNEL uint32_t narrow_random(float y, uint32_t h, const struct narrow f)
{
    const uint32_t u = bits_of(y);
    if (u < f.normal)
        return (uint32_t)(y * f.steps + (float)(h >> 8) * 0x1p-24f);
    return narrow_code(u, u <= f.most ? h >> (32 - f.drop) : narrow_half(u, f), f);
}

KERNEL void half_random_scalar_from(uint8_t *dst, const float *src, size_t n,
                                    size_t first, const uint32_t key[2],
                                    const struct narrow f)
{
    assert(n <= UINT32_MAX);
    for (size_t i = first; i < n; i++) {
        const uint32_t h = random_hash((uint32_t)i, key);
        const uint32_t code = narrow_random(float_of(magnitude_of(src[i])), h, f);
        const uint16_t half = (uint16_t)(code | (bits_of(src[i]) >> 16 & 0x8000u));
        memcpy(dst + i * sizeof half, &half, sizeof half);
    }
}

KERNEL void f8_encode_scalar_from(uint8_t *codes, const float *x, size_t n,
                                  size_t first, const struct trib_f8 *f)
{
    const struct narrow format = f->e5m2 ? narrow_e5m2 : narrow_e4m3;
    assert(n <= UINT32_MAX);
    for (size_t i = first; i < n; i++) {
        const float y = float_of(magnitude_of(x[i])) * f->scale;
        const uint32_t code =
            f->random ? narrow_random(y, random_hash((uint32_t)i, f->key), format)
                      : narrow_nearest(y, format);
        codes[i] = (uint8_t)(code | (has_sign(x[i]) ? 0x80u : 0u));
    }
}

/* Codes above the largest number have an all-ones exponent: NaN, or Inf for e5m2. */
KERNEL float f8_value(uint8_t code, const struct narrow f, float norm)
{
    const uint32_t c = code & 0x7fu, least = 1u << (23 - f.drop);
    const uint32_t bits = ((c + f.rebias) << f.drop) | (c > f.top ? 0x7f800000u : 0u);
    const float v = (c < least ? (float)c * (1.0f / f.steps) : float_of(bits)) * norm;
    return float_of(bits_of(v) ^ (code & 0x80u) << 24);
}

KERNEL float f8_e4m3_to_float(uint8_t code)
{
    return f8_value(code, narrow_e4m3, 1.0f);
}

KERNEL float f8_e5m2_to_float(uint8_t code)
{
    return f8_value(code, narrow_e5m2, 1.0f);
}

KERNEL uint8_t float_to_f8_e4m3(float v)
{
    return (uint8_t)(narrow_nearest(float_of(magnitude_of(v)), narrow_f8_e4m3) |
                     (has_sign(v) ? 0x80u : 0u));
}

KERNEL uint8_t float_to_f8_e5m2(float v)
{
    return (uint8_t)(narrow_nearest(float_of(magnitude_of(v)), narrow_f8_e5m2) |
                     (has_sign(v) ? 0x80u : 0u));
}

/* clang-format off */
SCALAR_ACCESS(f8_e4m3, uint8_t, float, float_to_f8_e4m3, f8_e4m3_to_float)
SCALAR_ACCESS(f8_e5m2, uint8_t, float, float_to_f8_e5m2, f8_e5m2_to_float)
SCALAR_CONVERT(f8_e4m3, src[i])
SCALAR_CONVERT(f8_e5m2, src[i])
/* clang-format on */

KERNEL void f8_decode_scalar(float *x, const uint8_t *codes, size_t n,
                             const struct trib_f8 *f)
{
    const struct narrow format = f->e5m2 ? narrow_e5m2 : narrow_e4m3;
    for (size_t i = 0; i < n; i++)
        x[i] = f8_value(codes[i], format, f->norm);
}

KERNEL void f8_add_scalar(float *acc, const uint8_t *codes, size_t n,
                          const struct trib_f8 *f)
{
    const struct narrow format = f->e5m2 ? narrow_e5m2 : narrow_e4m3;
    for (size_t i = 0; i < n; i++)
        acc[i] += f->weight * f8_value(codes[i], format, f->norm);
}

KERNEL bool dither_is_valid(const struct trib_dither_args *p)
{
    return p->highest > 0 && sign_is_above(p->sign, (uint32_t)p->highest) &&
           p->level[0] == 0;
}

KERNEL uint8_t dither_code(float x, uint32_t i, const struct trib_dither_args *p)
{
    const float u = (float)(random_hash(i, p->key) >> 8) * 0x1p-24f;
    const float y = float_of(magnitude_of(x)) * p->scale;
    int32_t k = (int32_t)((float)(int32_t)bits_of(y) * p->factor + p->offset);
    k = k < p->highest - 1 ? k : p->highest - 1;
    k = k > 0 ? k : 0;
    k += y >= p->level[k + 1];
    const float share = (y - p->level[k]) * p->per_gap[k];
    const uint32_t level = (uint32_t)k + (share + u >= 1.0f);
    return (uint8_t)(level | (has_sign(x) ? p->sign : 0u));
}

KERNEL float dither_value(uint8_t code, const struct trib_dither_args *p)
{
    const float v = p->level[code & (p->sign - 1u)] * p->norm;
    return float_of(bits_of(v) ^ (code & p->sign ? 0x80000000u : 0u));
}

SCALAR_CODEC(dither, trib_dither_args)

#endif
