/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conversion of element types bit by bit, deliberately not with the library's kernels.
 */
#include "perf/common/perf_number.h"

#include <assert.h>
#include <math.h>
#include <string.h>

bool perf_number_is_integer(trib_dtype_t dtype)
{
    return dtype >= TRIB_I8 && dtype <= TRIB_BOOL;
}

bool perf_number_is_signed(trib_dtype_t dtype)
{
    return dtype == TRIB_I8 || dtype == TRIB_I16 || dtype == TRIB_I32 ||
           dtype == TRIB_I64;
}

static uint32_t bits_of_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static double f16_value(uint16_t half)
{
    int exponent = (half >> 10) & 31;
    double fraction = half & 1023;
    double value;
    if (exponent == 31)
        value = fraction == 0 ? (double)INFINITY : (double)NAN;
    else if (exponent == 0)
        value = ldexp(fraction, -24);
    else
        value = ldexp(fraction + 1024, exponent - 25);
    return half & 0x8000 ? -value : value;
}

/* Round to nearest, ties to even. Input must be finite and within f16's range. */
static uint16_t f16_bits(double value)
{
    uint16_t sign = value < 0 ? 0x8000 : 0;
    int exponent;
    double magnitude = fabs(value);
    if (magnitude == 0.0)
        return sign;
    frexp(magnitude, &exponent);
    if (exponent < -13)
        exponent = -13; /* subnormal: the step size stays the same */
    long steps = lrint(ldexp(magnitude, 11 - exponent));
    assert(steps <= 2048 && exponent < 16);
    /* A carry out of the fraction correctly increments the exponent field. */
    return (uint16_t)(sign + (unsigned)((exponent + 13) << 10) + (unsigned)steps);
}

static double bf16_value(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof(value));
    return (double)value;
}

static uint16_t bf16_bits(double value)
{
    uint32_t bits = bits_of_f32((float)value);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/* In E4M3, codes with all exponent bits set are numbers, except one NaN. */
static double f8_value(trib_dtype_t dtype, uint8_t code)
{
    const bool e4m3 = dtype == TRIB_F8_E4M3;
    const int bits = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15;
    const int exponent = (code & 0x7f) >> bits, fraction = code & ((1 << bits) - 1);
    double value;

    if (e4m3 ? (code & 0x7f) == 0x7f : exponent == 31 && fraction)
        value = (double)NAN;
    else if (!e4m3 && exponent == 31)
        value = (double)INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, 1 - bias - bits);
    else
        value = ldexp(fraction + (1 << bits), exponent - bias - bits);
    return code & 0x80 ? -value : value;
}

/* Round to nearest, ties to even. Input must be finite and in range. */
static uint8_t f8_bits(trib_dtype_t dtype, double value)
{
    uint8_t code = 0, over = 0x78; /* bisection over the codes, which rise with the
                                    * value */

    while (over - code > 1) {
        const uint8_t middle = (uint8_t)((code + over) / 2);
        if (f8_value(dtype, middle) <= fabs(value))
            code = middle;
        else
            over = middle;
    }
    const double below = fabs(value) - f8_value(dtype, code);
    const double above = f8_value(dtype, code + 1) - fabs(value);
    code += above < below || (above <= below && (code & 1));
    return (uint8_t)(code | (value < 0 ? 0x80 : 0));
}

/* Use memcpy, since blocks may have any alignment. */
void perf_number_store(trib_dtype_t dtype, void *out, size_t i,
                       union perf_number number)
{
    size_t size = trib_dtype_size(dtype);
    float f32 = (float)number.f;
    uint16_t half;
    uint8_t f8;
    const void *from = &number.i; /* the low bytes, on little-endian machines */
    if (dtype == TRIB_F32) {
        from = &f32;
    } else if (dtype == TRIB_F16 || dtype == TRIB_BF16) {
        half = dtype == TRIB_F16 ? f16_bits(number.f) : bf16_bits(number.f);
        from = &half;
    } else if (dtype == TRIB_F8_E4M3 || dtype == TRIB_F8_E5M2) {
        f8 = f8_bits(dtype, number.f);
        from = &f8;
    }
    memcpy((unsigned char *)out + i * size, from, size);
}

union perf_number perf_number_load(trib_dtype_t dtype, const void *in, size_t i)
{
    union perf_number number = {.i = 0};
    const size_t size = trib_dtype_size(dtype);
    const unsigned char *at = (const unsigned char *)in + i * size;
    float f32;
    uint16_t half;
    if (perf_number_is_integer(dtype)) {
        const unsigned unused = 64 - 8 * (unsigned)size;
        memcpy(&number.i, at, size);
        if (perf_number_is_signed(dtype))
            number.i = (uint64_t)((int64_t)(number.i << unused) >> unused);
        return number;
    }
    switch (dtype) {
    case TRIB_F32:
        memcpy(&f32, at, sizeof(f32));
        number.f = (double)f32;
        break;
    case TRIB_F16:
    case TRIB_BF16:
        memcpy(&half, at, sizeof(half));
        number.f = dtype == TRIB_F16 ? f16_value(half) : bf16_value(half);
        break;
    case TRIB_F8_E4M3:
    case TRIB_F8_E5M2:
        number.f = f8_value(dtype, *at);
        break;
    default:
        memcpy(&number, at, sizeof(number));
        break;
    }
    return number;
}

double perf_number_epsilon(trib_dtype_t dtype)
{
    switch (dtype) {
    case TRIB_F32:
        return 0x1p-23;
    case TRIB_F64:
        return 0x1p-52;
    case TRIB_F16:
        return 0x1p-10;
    case TRIB_F8_E4M3:
        return 0x1p-3;
    case TRIB_F8_E5M2:
        return 0x1p-2;
    default:
        return 0x1p-7;
    }
}

double perf_number_denormal(trib_dtype_t dtype)
{
    return dtype == TRIB_F8_E4M3 ? 0x1p-9 : dtype == TRIB_F8_E5M2 ? 0x1p-16 : 0;
}
