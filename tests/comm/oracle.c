/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/comm/oracle.h"

#include <math.h>
#include <string.h>

bool oracle_is_float(trib_dtype_t dtype)
{
    return dtype <= TRIB_BF16;
}

double oracle_epsilon(trib_dtype_t dtype)
{
    switch (dtype) {
    case TRIB_F64:
        return 0x1p-52;
    case TRIB_F16:
        return 0x1p-10;
    case TRIB_BF16:
        return 0x1p-7;
    default:
        return 0x1p-23;
    }
}

/* The smallest number above 0, and the bits behind the leading one. */
static double smallest(trib_dtype_t dtype)
{
    switch (dtype) {
    case TRIB_F64:
        return 0x1p-1074;
    case TRIB_F16:
        return 0x1p-24;
    case TRIB_BF16:
        return 0x1p-133;
    default:
        return 0x1p-149;
    }
}

uint64_t oracle_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t oracle_hash(const void *p, size_t bytes)
{
    const uint8_t *b = p;
    uint64_t h = bytes;

    for (; bytes >= 8; bytes -= 8, b += 8) {
        uint64_t w;
        memcpy(&w, b, 8);
        h = (h ^ w) * 0x9fb21c651e98df25u;
        h ^= h >> 32;
    }
    for (; bytes; bytes--)
        h = (h ^ *b++) * 0x100000001b3u;
    return h | 1;
}

/* To nearest even, for the few bits of f16 and bf16; infinity where it does not fit. */
static uint16_t shrink(double x, int fraction_bits, int exponent_max)
{
    int sign_bit = 15, e;
    uint16_t sign = signbit(x) ? (uint16_t)(1u << sign_bit) : 0;
    uint16_t top = (uint16_t)((2 * exponent_max + 1) << fraction_bits);

    if (isnan(x))
        return (uint16_t)(sign | top | 1u << (fraction_bits - 1));
    if (isinf(x))
        return sign | top;
    x = fabs(x);
    if (x == 0)
        return sign;
    (void)frexp(x, &e);
    e -= 1;
    if (e < 1 - exponent_max)
        e = 1 - exponent_max;
    double scaled = nearbyint(ldexp(x, fraction_bits - e));
    /* A denormal has biased exponent 0; a carry out of the fraction is one exponent
     * up. */
    uint32_t bits =
        (uint32_t)scaled + ((uint32_t)(e + exponent_max - 1) << fraction_bits);
    return bits >= top ? sign | top : sign | (uint16_t)bits;
}

static double grow(uint16_t bits, int fraction_bits, int exponent_max)
{
    int biased = (bits & 0x7fff) >> fraction_bits;
    int fraction = bits & ((1 << fraction_bits) - 1);
    double x;

    if (biased == 2 * exponent_max + 1)
        x = fraction ? (double)NAN : (double)INFINITY;
    else if (biased == 0)
        x = ldexp(fraction, 1 - exponent_max - fraction_bits);
    else
        x = ldexp(fraction + (1 << fraction_bits),
                  biased - exponent_max - fraction_bits);
    return bits & 0x8000 ? -x : x;
}

struct oracle_value oracle_load(trib_dtype_t dtype, const void *p)
{
    struct oracle_value v = {0};
    float f;
    uint16_t h;
    int8_t b;
    int32_t w;

    switch (dtype) {
    case TRIB_F32:
        memcpy(&f, p, sizeof(f));
        v.f = (double)f;
        break;
    case TRIB_F64:
        memcpy(&v.f, p, sizeof(v.f));
        break;
    case TRIB_F16:
    case TRIB_BF16:
        memcpy(&h, p, sizeof(h));
        v.f = dtype == TRIB_F16 ? grow(h, 10, 15) : grow(h, 7, 127);
        break;
    case TRIB_I8:
        memcpy(&b, p, sizeof(b));
        v.i = b;
        break;
    case TRIB_I32:
        memcpy(&w, p, sizeof(w));
        v.i = w;
        break;
    default:
        memcpy(&v.i, p, sizeof(v.i));
    }
    return v;
}

void oracle_store(trib_dtype_t dtype, struct oracle_value v, void *p)
{
    float f = (float)v.f;
    uint16_t h;
    int8_t b = (int8_t)v.i;
    int32_t w = (int32_t)v.i;

    switch (dtype) {
    case TRIB_F32:
        memcpy(p, &f, sizeof(f));
        break;
    case TRIB_F64:
        memcpy(p, &v.f, sizeof(v.f));
        break;
    case TRIB_F16:
    case TRIB_BF16:
        h = dtype == TRIB_F16 ? shrink(v.f, 10, 15) : shrink(v.f, 7, 127);
        memcpy(p, &h, sizeof(h));
        break;
    case TRIB_I8:
        memcpy(p, &b, sizeof(b));
        break;
    case TRIB_I32:
        memcpy(p, &w, sizeof(w));
        break;
    default:
        memcpy(p, &v.i, sizeof(v.i));
    }
}

/* A double rounded to what the dtype can hold. */
static double rounded(trib_dtype_t dtype, double x)
{
    uint8_t bytes[8];

    oracle_store(dtype, (struct oracle_value){.f = x}, bytes);
    return oracle_load(dtype, bytes).f;
}

static double special(uint64_t bits, double otherwise)
{
    switch (bits >> 40 & 63) {
    case 0:
        return (double)NAN;
    case 1:
        return (double)INFINITY;
    case 2:
        return -(double)INFINITY;
    default:
        return otherwise;
    }
}

struct oracle_value oracle_input(const struct oracle *o, int rank, size_t i)
{
    uint64_t bits = oracle_mix(oracle_mix(o->seed + (uint64_t)rank) + i);
    static const double factors[] = {-2, -1, 1, 2, 1, -1, 2, 0.5};

    if (!oracle_is_float(o->dtype)) {
        uint8_t bytes[8];
        oracle_store(o->dtype, (struct oracle_value){.i = (int64_t)bits}, bytes);
        return oracle_load(o->dtype, bytes);
    }
    if (o->kind == ORACLE_REALS) {
        double x = (double)(int64_t)bits * 0x1p-63;
        return (struct oracle_value){.f = rounded(o->dtype, x)};
    }
    double x = o->op == TRIB_PROD ? factors[bits & 7] : (double)(bits % 17) - 8.0;
    return (struct oracle_value){.f =
                                     o->kind == ORACLE_SPECIALS ? special(bits, x) : x};
}

void oracle_fill(const struct oracle *o, int rank, size_t first, size_t n, void *dst)
{
    size_t bytes = trib_dtype_size(o->dtype);

    for (size_t i = 0; i < n; i++)
        oracle_store(o->dtype, oracle_input(o, rank, first + i),
                     (char *)dst + i * bytes);
}

static int64_t reduce_integers(const struct oracle *o, size_t i)
{
    int64_t acc = oracle_input(o, 0, i).i;
    uint8_t bytes[8];

    for (int r = 1; r < o->size; r++) {
        int64_t x = oracle_input(o, r, i).i;
        if (o->op == TRIB_MIN)
            acc = x < acc ? x : acc;
        else if (o->op == TRIB_MAX)
            acc = x > acc ? x : acc;
        else if (o->op == TRIB_PROD)
            acc = (int64_t)((uint64_t)acc * (uint64_t)x);
        else
            acc = (int64_t)((uint64_t)acc + (uint64_t)x);
    }
    oracle_store(o->dtype, (struct oracle_value){.i = acc}, bytes);
    acc = oracle_load(o->dtype, bytes).i;
    return o->op == TRIB_MEAN ? acc / o->size : acc;
}

static double combine(trib_op_t op, double a, double b)
{
    if (op == TRIB_PROD)
        return a * b;
    if (op != TRIB_MIN && op != TRIB_MAX)
        return a + b;
    if (isnan(a) || isnan(b))
        return (double)NAN;
    return op == TRIB_MIN ? (a < b ? a : b) : (a > b ? a : b);
}

struct oracle_answer oracle_reduced(const struct oracle *o, size_t i)
{
    struct oracle_answer a = {0};

    if (!oracle_is_float(o->dtype)) {
        a.value.i = reduce_integers(o, i);
        return a;
    }
    double acc = oracle_input(o, 0, i).f;
    a.magnitude = fabs(acc);
    for (int r = 1; r < o->size; r++) {
        double x = oracle_input(o, r, i).f;
        acc = combine(o->op, acc, x);
        a.magnitude += fabs(x);
    }
    double eps = oracle_epsilon(o->dtype), steps = o->size + 1;
    if (o->op == TRIB_MEAN)
        acc /= o->size;
    a.value.f = o->dtype == TRIB_F64 ? acc : rounded(o->dtype, acc);
    if (o->kind == ORACLE_REALS && o->op == TRIB_PROD)
        a.tolerance = steps * (eps * fabs(acc) + smallest(o->dtype));
    else if (o->kind == ORACLE_REALS && o->op == TRIB_SUM)
        a.tolerance = steps * eps * a.magnitude;
    else if (o->kind == ORACLE_REALS && o->op == TRIB_MEAN)
        a.tolerance = steps * eps * a.magnitude / o->size;
    else if (o->op == TRIB_MEAN)
        a.tolerance = 2 * eps * fabs(acc);
    return a;
}

struct oracle_answer oracle_copied(const struct oracle *o, int rank, size_t i)
{
    struct oracle_answer a = {.value = oracle_input(o, rank, i)};

    a.magnitude = fabs(a.value.f);
    return a;
}

bool oracle_equal(trib_dtype_t dtype, const struct oracle_answer *expected,
                  struct oracle_value got)
{
    double e = expected->value.f;

    if (!oracle_is_float(dtype))
        return got.i == expected->value.i;
    if (isnan(e) || isnan(got.f))
        return isnan(e) && isnan(got.f);
    if (isinf(e) || isinf(got.f))
        return e == got.f;
    return fabs(got.f - e) <= expected->tolerance;
}
