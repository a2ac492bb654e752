/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/comm/oracle.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"

bool oracle_is_float(trib_dtype_t dtype)
{
    return dtype <= TRIB_BF16 || dtype == TRIB_F8_E4M3 || dtype == TRIB_F8_E5M2;
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
    case TRIB_F8_E4M3:
        return 0x1p-3;
    case TRIB_F8_E5M2:
        return 0x1p-2;
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
    case TRIB_F8_E4M3:
        return 0x1p-9;
    case TRIB_F8_E5M2:
        return 0x1p-16;
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

/* x * 2^exponent, exactly: exponents of narrow types are far from those of double. */
static double times_power(double x, int exponent)
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;

    memcpy(&power, &bits, sizeof(power));
    return x * power;
}

/* To nearest even, for the few bits of f16, bf16 and 8-bit floats; top, the code of
 * infinity, where it does not fit. */
static uint16_t shrink(double x, int fraction_bits, int exponent_max, uint16_t top)
{
    int sign_bit = 15, e;
    uint16_t sign = signbit(x) ? (uint16_t)(1u << sign_bit) : 0;

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
    double scaled = nearbyint(times_power(x, fraction_bits - e));
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
        x = times_power(fraction, 1 - exponent_max - fraction_bits);
    else
        x = times_power(fraction + (1 << fraction_bits),
                        biased - exponent_max - fraction_bits);
    return bits & 0x8000 ? -x : x;
}

/* E4M3 has numbers where others have Inf: only the code above them is NaN. */
static double grow_e4m3(uint8_t code)
{
    const int biased = code >> 3 & 15, fraction = code & 7;
    double x =
        biased ? times_power(fraction + 8, biased - 10) : times_power(fraction, -9);

    if ((code & 0x7f) == 0x7f)
        x = (double)NAN;
    return code & 0x80 ? -x : x;
}

static uint8_t shrink_f8(trib_dtype_t dtype, double x)
{
    const uint16_t wide =
        dtype == TRIB_F8_E4M3 ? shrink(x, 3, 7, 0x7f) : shrink(x, 2, 15, 31 << 2);

    return (uint8_t)((wide >> 8 & 0x80) | (wide & 0x7f));
}

static double load_float(trib_dtype_t dtype, const void *p)
{
    double d;
    float f;
    uint16_t h;
    uint8_t c;

    switch (dtype) {
    case TRIB_F32:
        memcpy(&f, p, sizeof(f));
        return (double)f;
    case TRIB_F64:
        memcpy(&d, p, sizeof(d));
        return d;
    case TRIB_F16:
    case TRIB_BF16:
        memcpy(&h, p, sizeof(h));
        return dtype == TRIB_F16 ? grow(h, 10, 15) : grow(h, 7, 127);
    default:
        memcpy(&c, p, sizeof(c));
        return dtype == TRIB_F8_E4M3
                   ? grow_e4m3(c)
                   : grow((uint16_t)((c & 0x80) << 8 | (c & 0x7f)), 2, 15);
    }
}

static void store_float(trib_dtype_t dtype, double x, void *p)
{
    const float f = (float)x;
    uint16_t h;
    uint8_t c;

    switch (dtype) {
    case TRIB_F32:
        memcpy(p, &f, sizeof(f));
        break;
    case TRIB_F64:
        memcpy(p, &x, sizeof(x));
        break;
    case TRIB_F16:
    case TRIB_BF16:
        h = dtype == TRIB_F16 ? shrink(x, 10, 15, 31 << 10)
                              : shrink(x, 7, 127, 255 << 7);
        memcpy(p, &h, sizeof(h));
        break;
    default:
        c = shrink_f8(dtype, x);
        memcpy(p, &c, sizeof(c));
    }
}

static bool is_signed(trib_dtype_t dtype)
{
    return dtype == TRIB_I8 || dtype == TRIB_I16 || dtype == TRIB_I32 ||
           dtype == TRIB_I64;
}

struct oracle_value oracle_load(trib_dtype_t dtype, const void *p)
{
    struct oracle_value v = {0};
    const int unused = 64 - 8 * (int)trib_dtype_size(dtype);
    uint64_t u = 0;

    if (oracle_is_float(dtype)) {
        v.f = load_float(dtype, p);
        return v;
    }
    memcpy(&u, p, trib_dtype_size(dtype)); /* little endian */
    v.i = is_signed(dtype) ? (int64_t)(u << unused) >> unused : (int64_t)u;
    return v;
}

void oracle_store(trib_dtype_t dtype, struct oracle_value v, void *p)
{
    if (oracle_is_float(dtype))
        store_float(dtype, v.f, p);
    else
        memcpy(p, &v.i, trib_dtype_size(dtype));
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
    uint8_t bytes[8];

    if (!oracle_is_float(o->dtype)) {
        if ((o->dtype == TRIB_BOOL || trib_op_is_logical(o->op)) && bits >> 62 == 0)
            bits = 0;
        oracle_store(o->dtype, (struct oracle_value){.i = (int64_t)bits}, bytes);
        return oracle_load(o->dtype, bytes);
    }
    if (o->kind == ORACLE_REALS) {
        double x = (double)(int64_t)bits * 0x1p-63;
        return (struct oracle_value){.f = rounded(o->dtype, x)};
    }
    /* so that no sum of 8 is rounded */
    const uint64_t most = o->dtype == TRIB_F8_E5M2   ? 1
                          : o->dtype == TRIB_F8_E4M3 ? 2
                                                     : 8;
    double x = o->op == TRIB_PROD ? factors[bits & 7]
                                  : (double)(bits % (2 * most + 1)) - (double)most;
    if (o->kind == ORACLE_SPECIALS)
        x = special(bits, x);
    return (struct oracle_value){.f = rounded(o->dtype, x)};
}

void oracle_fill(const struct oracle *o, int rank, size_t first, size_t n, void *dst)
{
    size_t bytes = trib_dtype_size(o->dtype);

    for (size_t i = 0; i < n; i++)
        oracle_store(o->dtype, oracle_input(o, rank, first + i),
                     (char *)dst + i * bytes);
}

static bool less(trib_dtype_t dtype, int64_t a, int64_t b)
{
    return is_signed(dtype) ? a < b : (uint64_t)a < (uint64_t)b;
}

static int64_t combine_integers(const struct oracle *o, int64_t a, int64_t b)
{
    switch (o->op) {
    case TRIB_MIN:
        return less(o->dtype, b, a) ? b : a;
    case TRIB_MAX:
        return less(o->dtype, a, b) ? b : a;
    case TRIB_PROD:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case TRIB_BAND:
        return a & b;
    case TRIB_BOR:
        return a | b;
    case TRIB_BXOR:
        return a ^ b;
    case TRIB_LAND:
        return a && b;
    case TRIB_LOR:
        return a || b;
    case TRIB_LXOR:
        return !a != !b;
    default:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

/* The logical op that reduces bool as this op does. */
static trib_op_t logical(trib_op_t op)
{
    switch (op) {
    case TRIB_MIN:
    case TRIB_PROD:
    case TRIB_BAND:
        return TRIB_LAND;
    case TRIB_SUM:
    case TRIB_MAX:
    case TRIB_BOR:
        return TRIB_LOR;
    case TRIB_BXOR:
        return TRIB_LXOR;
    default:
        return op;
    }
}

static int64_t reduce_integers(const struct oracle *of, size_t i)
{
    struct oracle o = *of;
    int64_t acc = oracle_input(of, 0, i).i;
    uint8_t bytes[8];

    if (o.dtype == TRIB_BOOL)
        o.op = logical(o.op);
    if (trib_op_is_logical(o.op))
        acc = acc != 0;
    for (int r = 1; r < o.size; r++)
        acc = combine_integers(&o, acc, oracle_input(of, r, i).i);
    oracle_store(o.dtype, (struct oracle_value){.i = acc}, bytes);
    acc = oracle_load(o.dtype, bytes).i;
    if (o.op == TRIB_MEAN)
        acc = is_signed(o.dtype) ? acc / o.size
                                 : (int64_t)((uint64_t)acc / (uint64_t)o.size);
    return acc;
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

static int64_t bits_of(const struct oracle *o, int rank, size_t i)
{
    uint8_t bytes[8] = {0};
    int64_t wide;
    int32_t narrow;

    oracle_store(o->dtype, oracle_input(o, rank, i), bytes);
    memcpy(&wide, bytes, sizeof(wide));
    memcpy(&narrow, bytes, sizeof(narrow));
    return trib_dtype_size(o->dtype) == 4 ? narrow : wide;
}

/* Below 0: value a of minloc or maxloc comes before b; 0: they are equal. */
static int compare(const struct oracle *o, struct oracle_value a, struct oracle_value b)
{
    const int sign = o->op == TRIB_MINLOC ? 1 : -1;

    if (!oracle_is_float(o->dtype))
        return a.i == b.i ? 0 : less(o->dtype, a.i, b.i) ? -sign : sign;
    if (isnan(a.f) || isnan(b.f))
        return isnan(a.f) && isnan(b.f) ? 0 : isnan(a.f) ? -1 : 1;
    return a.f < b.f ? -sign : a.f > b.f ? sign : 0;
}

static struct oracle_answer located(const struct oracle *o, size_t i)
{
    const size_t value = i / 2 * 2;
    int best = 0;

    for (int r = 1; r < o->size; r++) {
        const int c =
            compare(o, oracle_input(o, r, value), oracle_input(o, best, value));
        if (c < 0 || (c == 0 && bits_of(o, r, value + 1) < bits_of(o, best, value + 1)))
            best = r;
    }
    return oracle_copied(o, best, i);
}

struct oracle_answer oracle_reduced(const struct oracle *o, size_t i)
{
    struct oracle_answer a = {0};

    if (trib_op_is_located(o->op))
        return located(o, i);
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
        a.tolerance = steps * (eps * a.magnitude + smallest(o->dtype));
    else if (o->kind == ORACLE_REALS && o->op == TRIB_MEAN)
        a.tolerance = steps * (eps * a.magnitude / o->size + 2 * smallest(o->dtype));
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
