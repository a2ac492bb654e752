/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conversion of element types bit by bit, deliberately not with the library's kernels.
 */
#include "perf/common/perf_number.h"

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

/* A float: bits of the fraction, the bias, the code of infinity (of NaN, if the format
 * has no infinity), the sign bit, the spacing at 1, and the smallest number above 0.
 * The compiler converts float and double. */
struct format {
    int fraction_bits, bias;
    uint16_t top, sign;
    double epsilon, smallest;
};

static const struct format formats[TRIB_DTYPE_COUNT] = {
    [TRIB_F32] = {.epsilon = 0x1p-23, .smallest = 0x1p-149},
    [TRIB_F64] = {.epsilon = 0x1p-52, .smallest = 0x1p-1074},
    [TRIB_F16] = {10, 15, 31 << 10, 0x8000, 0x1p-10, 0x1p-24},
    [TRIB_BF16] = {7, 127, 255 << 7, 0x8000, 0x1p-7, 0x1p-133},
    [TRIB_F8_E4M3] = {3, 7, 0x7f, 0x80, 0x1p-3, 0x1p-9},
    [TRIB_F8_E5M2] = {2, 15, 31 << 2, 0x80, 0x1p-2, 0x1p-16},
};

/* Oracles ask for each element: a table needs no call. */
static const uint8_t sizes[TRIB_DTYPE_COUNT] = {
    [TRIB_F32] = 4,     [TRIB_F64] = 8,     [TRIB_F16] = 2,  [TRIB_BF16] = 2,
    [TRIB_F8_E4M3] = 1, [TRIB_F8_E5M2] = 1, [TRIB_I8] = 1,   [TRIB_I16] = 2,
    [TRIB_I32] = 4,     [TRIB_I64] = 8,     [TRIB_U8] = 1,   [TRIB_U16] = 2,
    [TRIB_U32] = 4,     [TRIB_U64] = 8,     [TRIB_BOOL] = 1,
};

/* Return x * 2^exponent exactly: a double has many more exponents than narrow types. */
static double times_power(double x, int exponent)
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;

    memcpy(&power, &bits, sizeof(power));
    return x * power;
}

/* Round to nearest, ties to even. What does not fit becomes infinity. */
static uint16_t narrow_bits(trib_dtype_t dtype, double x)
{
    const struct format *n = &formats[dtype];
    const uint16_t sign = signbit(x) ? n->sign : 0;
    int exponent;

    if (isnan(x))
        return (uint16_t)(sign | n->top | 1u << (n->fraction_bits - 1));
    if (isinf(x))
        return sign | n->top;
    x = fabs(x);
    if (x == 0)
        return sign;
    (void)frexp(x, &exponent);
    exponent -= 1;
    if (exponent < 1 - n->bias)
        exponent = 1 - n->bias; /* subnormal: the step size stays the same */
    const double steps = nearbyint(times_power(x, n->fraction_bits - exponent));
    /* A carry out of the fraction correctly increments the exponent field. */
    const uint32_t bits =
        (uint32_t)steps + ((uint32_t)(exponent + n->bias - 1) << n->fraction_bits);
    return bits >= n->top ? sign | n->top : sign | (uint16_t)bits;
}

/* In E4M3, codes with all exponent bits set are numbers, except one NaN. */
static double narrow_value(trib_dtype_t dtype, uint16_t code)
{
    const struct format *n = &formats[dtype];
    const uint16_t bits = code & (uint16_t)(n->sign - 1);
    const int exponent = bits >> n->fraction_bits;
    const int fraction = bits & ((1 << n->fraction_bits) - 1);
    double value;

    if (bits >= n->top)
        value =
            bits == n->top && dtype != TRIB_F8_E4M3 ? (double)INFINITY : (double)NAN;
    else if (exponent == 0)
        value = times_power(fraction, 1 - n->bias - n->fraction_bits);
    else
        value = times_power(fraction + (1 << n->fraction_bits),
                            exponent - n->bias - n->fraction_bits);
    return code & n->sign ? -value : value;
}

/* Copy an element of any alignment. Oracles do so for each element: a constant size
 * needs no call of memcpy. */
static inline void copy(void *to, const void *from, size_t size)
{
    if (size == 4)
        memcpy(to, from, 4);
    else if (size == 8)
        memcpy(to, from, 8);
    else if (size == 2)
        memcpy(to, from, 2);
    else
        memcpy(to, from, 1);
}

/* Machines are little-endian. */
void perf_number_store(trib_dtype_t dtype, void *out, size_t i,
                       union perf_number number)
{
    const size_t size = sizes[dtype];
    unsigned char *to = (unsigned char *)out + i * size;

    if (dtype == TRIB_F32) {
        const float f32 = (float)number.f;
        memcpy(to, &f32, sizeof(f32));
        return;
    }
    if (dtype != TRIB_F64 && !perf_number_is_integer(dtype))
        number.i = narrow_bits(dtype, number.f);
    copy(to, &number.i, size);
}

union perf_number perf_number_load(trib_dtype_t dtype, const void *in, size_t i)
{
    union perf_number number = {.i = 0};
    const size_t size = sizes[dtype];
    const unsigned char *from = (const unsigned char *)in + i * size;
    const unsigned unused = 64 - 8 * (unsigned)size;

    if (dtype == TRIB_F32) {
        float f32;
        memcpy(&f32, from, sizeof(f32));
        number.f = (double)f32;
        return number;
    }
    copy(&number.i, from, size);
    if (perf_number_is_signed(dtype))
        number.i = (uint64_t)((int64_t)(number.i << unused) >> unused);
    else if (dtype != TRIB_F64 && !perf_number_is_integer(dtype))
        number.f = narrow_value(dtype, (uint16_t)number.i);
    return number;
}

double perf_number_epsilon(trib_dtype_t dtype)
{
    return formats[dtype].epsilon;
}

double perf_number_smallest(trib_dtype_t dtype)
{
    return formats[dtype].smallest;
}
