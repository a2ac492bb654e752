/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels in plain C: the specification. kernels_c.c makes a table of them. The vector
 * files compile them again with their own flags, only for functions without a vector
 * version.
 *
 * Floating-point sums run in the order of src, one rounding per step, no contraction
 * (-ffp-contract=off), so every instruction set produces the same bits. Only NaN
 * payloads are unspecified.
 */
#ifndef COMPRESS_KERNELS_KERNELS_SCALAR_H
#define COMPRESS_KERNELS_KERNELS_SCALAR_H

#include <assert.h>
#include <math.h>
#include <string.h>

#include "compress/kernels/kernels.h"

/* always_inline turns the function pointers passed to a body into constants, so the
 * body is compiled once per (type, operator) without a macro. */
#define KERNEL static inline __attribute__((always_inline, unused))

enum { SCALAR_BLOCK = 64 }; /* elements kept between two passes over the sources */

/* ---- element formats ---------------------------------------------------------- */

KERNEL uint32_t bits_of(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

KERNEL float float_of(uint32_t u)
{
    float v;
    memcpy(&v, &u, sizeof v);
    return v;
}

/* bf16 is the upper half of binary32 */
KERNEL float bf16_to_float(uint16_t h)
{
    return float_of((uint32_t)h << 16);
}

KERNEL uint16_t float_to_bf16(float v)
{
    const uint32_t u = bits_of(v);
    if ((u & 0x7fffffffu) > 0x7f800000u) /* NaN: quiet, never rounded to Inf */
        return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

KERNEL float f16_to_float(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t exp = h >> 10 & 31u;
    const uint32_t man = h & 0x3ffu;
    if (exp == 31)
        return float_of(sign | 0x7f800000u | man << 13 | (man ? 0x400000u : 0u));
    if (exp == 0) /* a multiple of 2^-24, exact in f32 */
        return float_of(bits_of((float)man * 0x1p-24f) | sign);
    return float_of(sign | (exp + 112u) << 23 | man << 13);
}

KERNEL uint16_t float_to_f16(float v)
{
    const uint32_t sign = bits_of(v) >> 16 & 0x8000u;
    const uint32_t u = bits_of(v) & 0x7fffffffu;
    if (u > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (u >> 13 & 0x3ffu));
    if (u >= 0x477ff000u) /* 65520 and above round to Inf */
        return (uint16_t)(sign | 0x7c00u);
    if (u < 0x38800000u) /* below 2^-14: the ulp of 0.5 is 2^-24, as of an f16
                          * denormal */
        return (uint16_t)(sign | (bits_of(float_of(u) + 0.5f) - 0x3f000000u));
    return (uint16_t)(sign | (u + 0xfffu + (u >> 13 & 1u) - (112u << 23)) >> 13);
}

/* clang-format off */
#define SCALAR_ACCESS(name, type, value, from_value, to_value) \
    KERNEL value load_##name(const void *p, size_t i) \
    { \
        type t; \
        memcpy(&t, (const char *)p + i * sizeof t, sizeof t); \
        return to_value(t); \
    } \
    KERNEL void save_##name(void *p, size_t i, value v) \
    { \
        const type t = from_value(v); \
        memcpy((char *)p + i * sizeof t, &t, sizeof t); \
    }

SCALAR_ACCESS(f32, float, float, , )
SCALAR_ACCESS(f16, uint16_t, float, float_to_f16, f16_to_float)
SCALAR_ACCESS(bf16, uint16_t, float, float_to_bf16, bf16_to_float)
SCALAR_ACCESS(f64, double, double, , )
SCALAR_ACCESS(i8, int8_t, int64_t, (int8_t), )
SCALAR_ACCESS(i32, int32_t, int64_t, (int32_t), )
SCALAR_ACCESS(i64, int64_t, int64_t, , )
SCALAR_ACCESS(u8, uint8_t, int64_t, (uint8_t), )
SCALAR_ACCESS(i16, int16_t, int64_t, (int16_t), )
SCALAR_ACCESS(u16, uint16_t, int64_t, (uint16_t), )
SCALAR_ACCESS(u32, uint32_t, int64_t, (uint32_t), )
SCALAR_ACCESS(u64, uint64_t, int64_t, (uint64_t), (int64_t))
SCALAR_ACCESS(truth8, uint8_t, int64_t, (uint8_t), 0 != )
SCALAR_ACCESS(truth16, uint16_t, int64_t, (uint16_t), 0 != )
SCALAR_ACCESS(truth32, uint32_t, int64_t, (uint32_t), 0 != )
SCALAR_ACCESS(truth64, uint64_t, int64_t, (uint64_t), 0 != )

/* ---- operators ---------------------------------------------------------------- */

KERNEL float add_float(float a, float b) { return a + b; }
KERNEL float mul_float(float a, float b) { return a * b; }
/* NaN wins; of equal operands, such as 0 and -0, the later one */
KERNEL float min_float(float a, float b) { return a < b || a != a ? a : b; }
KERNEL float max_float(float a, float b) { return a > b || a != a ? a : b; }

KERNEL double add_double(double a, double b) { return a + b; }
KERNEL double mul_double(double a, double b) { return a * b; }
KERNEL double min_double(double a, double b) { return a < b || a != a ? a : b; }
KERNEL double max_double(double a, double b) { return a > b || a != a ? a : b; }

/* Narrow integers are computed in 64 bits: truncation at the store keeps the right low
 * bits. */
KERNEL int64_t add_int(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
KERNEL int64_t mul_int(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}
KERNEL int64_t min_int(int64_t a, int64_t b) { return a < b ? a : b; }
KERNEL int64_t max_int(int64_t a, int64_t b) { return a > b ? a : b; }
/* Narrower unsigned integers are non-negative in 64 bits. */
KERNEL int64_t min_unsigned(int64_t a, int64_t b)
{
    return (uint64_t)a < (uint64_t)b ? a : b;
}
KERNEL int64_t max_unsigned(int64_t a, int64_t b)
{
    return (uint64_t)a > (uint64_t)b ? a : b;
}
KERNEL int64_t and_int(int64_t a, int64_t b) { return a & b; }
KERNEL int64_t or_int(int64_t a, int64_t b) { return a | b; }
KERNEL int64_t xor_int(int64_t a, int64_t b) { return a ^ b; }

KERNEL int64_t divide_i8(int64_t v, int by) { return (int8_t)v / by; }
KERNEL int64_t divide_i16(int64_t v, int by) { return (int16_t)v / by; }
KERNEL int64_t divide_i32(int64_t v, int by) { return (int32_t)v / by; }
KERNEL int64_t divide_i64(int64_t v, int by) { return v / by; }
KERNEL int64_t divide_u8(int64_t v, int by) { return (uint8_t)v / by; }
KERNEL int64_t divide_u16(int64_t v, int by) { return (uint16_t)v / by; }
KERNEL int64_t divide_u32(int64_t v, int by) { return (uint32_t)v / by; }
KERNEL int64_t divide_u64(int64_t v, int by)
{
    return (int64_t)((uint64_t)v / (uint64_t)by);
}

/* clang-format on */

/* ---- k-ary reduction ---------------------------------------------------------- */

KERNEL size_t block_of(size_t left)
{
    return left < SCALAR_BLOCK ? left : SCALAR_BLOCK;
}

KERNEL float weigh(const struct trib_reduce_args *r, int k, float v)
{
    return r->weight ? r->weight[k] * v : v;
}

/* Return true if the arguments keep the contract of struct trib_reduce_args. Overlaps
 * are not checked: only the callers' types tell the size of an element. */
KERNEL bool reduce_is_valid(const struct trib_reduce_args *r)
{
    return r->n_src >= 1 && r->n_src <= TRIB_REDUCE_MAX_SRC && r->n_dst >= 1 &&
           r->n_dst <= TRIB_REDUCE_MAX_DST && r->ranks >= 0;
}

KERNEL void reduce_float(const struct trib_reduce_args *r, float (*op)(float, float),
                         float (*load)(const void *, size_t),
                         void (*save)(void *, size_t, float))
{
    const float divisor = r->weight ? r->divisor : (float)r->ranks;
    float acc[SCALAR_BLOCK];

    assert(reduce_is_valid(r) && !(divisor < 0));
    for (size_t i = 0, m; i < r->n; i += m) {
        m = block_of(r->n - i);
        for (size_t b = 0; b < m; b++)
            acc[b] = weigh(r, 0, load(r->src[0], i + b));
        for (int k = 1; k < r->n_src; k++)
            for (size_t b = 0; b < m; b++)
                acc[b] = op(acc[b], weigh(r, k, load(r->src[k], i + b)));
        for (size_t b = 0; divisor > 0 && b < m; b++)
            acc[b] /= divisor;
        for (int j = 0; j < r->n_dst; j++)
            for (size_t b = 0; b < m; b++)
                save(r->dst[j], i + b, acc[b]);
    }
}

KERNEL void reduce_double(const struct trib_reduce_args *r,
                          double (*op)(double, double))
{
    double acc[SCALAR_BLOCK];

    assert(reduce_is_valid(r) && !r->weight);
    for (size_t i = 0, m; i < r->n; i += m) {
        m = block_of(r->n - i);
        for (size_t b = 0; b < m; b++)
            acc[b] = load_f64(r->src[0], i + b);
        for (int k = 1; k < r->n_src; k++)
            for (size_t b = 0; b < m; b++)
                acc[b] = op(acc[b], load_f64(r->src[k], i + b));
        for (size_t b = 0; r->ranks && b < m; b++)
            acc[b] /= r->ranks;
        for (int j = 0; j < r->n_dst; j++)
            for (size_t b = 0; b < m; b++)
                save_f64(r->dst[j], i + b, acc[b]);
    }
}

struct int_format {
    int64_t (*load)(const void *, size_t);
    void (*save)(void *, size_t, int64_t);
    int64_t (*divide)(int64_t, int); /* of a sum that wraps to its type first */
};

KERNEL void reduce_int(const struct trib_reduce_args *r,
                       int64_t (*op)(int64_t, int64_t), const struct int_format f)
{
    int64_t acc[SCALAR_BLOCK];

    assert(reduce_is_valid(r) && !r->weight && (f.divide || !r->ranks));
    for (size_t i = 0, m; i < r->n; i += m) {
        m = block_of(r->n - i);
        for (size_t b = 0; b < m; b++)
            acc[b] = f.load(r->src[0], i + b);
        for (int k = 1; k < r->n_src; k++)
            for (size_t b = 0; b < m; b++)
                acc[b] = op(acc[b], f.load(r->src[k], i + b));
        for (size_t b = 0; r->ranks && b < m; b++)
            acc[b] = f.divide(acc[b], r->ranks);
        for (int j = 0; j < r->n_dst; j++)
            for (size_t b = 0; b < m; b++)
                f.save(r->dst[j], i + b, acc[b]);
    }
}

/* clang-format off */
static const struct int_format format_i8 = {load_i8, save_i8, divide_i8};
static const struct int_format format_i16 = {load_i16, save_i16, divide_i16};
static const struct int_format format_i32 = {load_i32, save_i32, divide_i32};
static const struct int_format format_i64 = {load_i64, save_i64, divide_i64};
static const struct int_format format_u8 = {load_u8, save_u8, divide_u8};
static const struct int_format format_u16 = {load_u16, save_u16, divide_u16};
static const struct int_format format_u32 = {load_u32, save_u32, divide_u32};
static const struct int_format format_u64 = {load_u64, save_u64, divide_u64};
/* 1 where an element is not 0; never divided */
static const struct int_format format_truth8 = {load_truth8, save_truth8, NULL};
static const struct int_format format_truth16 = {load_truth16, save_truth16, NULL};
static const struct int_format format_truth32 = {load_truth32, save_truth32, NULL};
static const struct int_format format_truth64 = {load_truth64, save_truth64, NULL};
/* clang-format on */

/* ---- conversions -------------------------------------------------------------- */

/* to an integer: nearest even, saturated, NaN gives 0 */
KERNEL int64_t float_to_int(float v, int64_t lowest, int64_t highest)
{
    if (v != v)
        return 0;
    if (v <= (float)lowest)
        return lowest;
    if (v >= (float)highest)
        return highest;
    return (int64_t)rintf(v);
}

KERNEL void to_f32_f32_scalar(float *dst, const void *src, size_t n)
{
    memmove(dst, src, n * sizeof *dst);
}

KERNEL void from_f32_f32_scalar(void *dst, const float *src, size_t n)
{
    memmove(dst, src, n * sizeof *src);
}

/* clang-format off */
#define SCALAR_CONVERT(type, from_float) \
    KERNEL void to_f32_##type##_scalar(float *dst, const void *src, size_t n) \
    { \
        for (size_t i = 0; i < n; i++) \
            dst[i] = (float)load_##type(src, i); \
    } \
    KERNEL void from_f32_##type##_scalar(void *dst, const float *src, size_t n) \
    { \
        for (size_t i = 0; i < n; i++) \
            save_##type(dst, i, from_float); \
    }

SCALAR_CONVERT(f64, (double)src[i])
SCALAR_CONVERT(f16, src[i])
SCALAR_CONVERT(bf16, src[i])
SCALAR_CONVERT(i8, float_to_int(src[i], INT8_MIN, INT8_MAX))
SCALAR_CONVERT(i32, float_to_int(src[i], INT32_MIN, INT32_MAX))
SCALAR_CONVERT(i64, float_to_int(src[i], INT64_MIN, INT64_MAX))
SCALAR_CONVERT(u8, float_to_int(src[i], 0, UINT8_MAX))
SCALAR_CONVERT(i16, float_to_int(src[i], INT16_MIN, INT16_MAX))
SCALAR_CONVERT(u16, float_to_int(src[i], 0, UINT16_MAX))
SCALAR_CONVERT(u32, float_to_int(src[i], 0, UINT32_MAX))
SCALAR_CONVERT(truth8, float_to_int(src[i], 0, 1))
/* clang-format on */

KERNEL void to_f32_u64_scalar(float *dst, const void *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = (float)(uint64_t)load_u64(src, i);
}

KERNEL void from_f32_u64_scalar(void *dst, const float *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        save_u64(dst, i,
                 src[i] >= 0x1p63f ? src[i] >= 0x1p64f ? -1 : (int64_t)(uint64_t)src[i]
                                   : float_to_int(src[i], 0, INT64_MAX));
}

/* acc += weight * src */
KERNEL void axpy_scalar(float *acc, const void *src, float weight, size_t n,
                        float (*load)(const void *, size_t))
{
    for (size_t i = 0; i < n; i++)
        acc[i] += weight * load(src, i);
}

#endif
