/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/comm/oracle.h"

#include <math.h>
#include <string.h>

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

union perf_number oracle_rounded(trib_dtype_t dtype, union perf_number x)
{
    uint64_t bytes;

    if (dtype == TRIB_F64 || dtype == TRIB_I64 || dtype == TRIB_U64)
        return x;
    if (dtype == TRIB_F32) {
        x.f = (double)(float)x.f;
        return x;
    }
    perf_number_store(dtype, &bytes, 0, x);
    return perf_number_load(dtype, &bytes, 0);
}

union perf_number oracle_whole(trib_dtype_t dtype, double x)
{
    union perf_number number = {.f = x};

    if (perf_number_is_integer(dtype))
        number.i = (uint64_t)(int64_t)x;
    return number;
}

union perf_number oracle_sum(trib_dtype_t dtype, union perf_number a,
                             union perf_number b)
{
    return perf_op_combine(dtype, TRIB_SUM, a, b);
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

/* Return a whole number so small that no sum of 8 is rounded. Divisors are constants: a
 * division takes longer than all the rest. */
static double small_input(trib_dtype_t dtype, uint64_t bits)
{
    if (dtype == TRIB_F8_E5M2)
        return (double)(bits % 3) - 1;
    if (dtype == TRIB_F8_E4M3)
        return (double)(bits % 5) - 2;
    return (double)(bits % 17) - 8;
}

/* Return a float of the input of a rank. */
static double real_input(const struct oracle *o, uint64_t bits)
{
    static const double factors[] = {-2, -1, 1, 2, 1, -1, 2, 0.5};
    double x;

    if (o->kind == ORACLE_REALS)
        return (double)(int64_t)bits * 0x1p-63;
    x = o->op == TRIB_PROD ? factors[bits & 7] : small_input(o->dtype, bits);
    return o->kind == ORACLE_SPECIALS ? special(bits, x) : x;
}

union perf_number oracle_input(const struct oracle *o, int rank, size_t i)
{
    const uint64_t bits = oracle_mix(oracle_mix(o->seed + (uint64_t)rank) + i);
    union perf_number x;

    if (!perf_number_is_integer(o->dtype))
        x.f = real_input(o, bits);
    else
        x.i = perf_op_is_truth(o->dtype, o->op) && bits >> 62 == 0 ? 0 : bits;
    return oracle_rounded(o->dtype, x);
}

void oracle_fill(const struct oracle *o, int rank, size_t first, size_t n, void *dst)
{
    for (size_t i = 0; i < n; i++)
        perf_number_store(o->dtype, dst, i, oracle_input(o, rank, first + i));
}

static struct oracle_answer located(const struct oracle *o, size_t i)
{
    uint64_t pair[2], best[2];
    int rank = 0;

    oracle_fill(o, 0, i / 2 * 2, 2, best);
    for (int r = 1; r < o->size; r++) {
        oracle_fill(o, r, i / 2 * 2, 2, pair);
        if (!perf_op_precedes(o->dtype, o->op, pair, best))
            continue;
        memcpy(best, pair, sizeof(best));
        rank = r;
    }
    return oracle_copied(o, rank, i);
}

/* Only means of integers are rounded. */
static double tolerance_of(const struct oracle *o, double result, double magnitude)
{
    if (o->kind == ORACLE_REALS)
        return perf_op_tolerance(
            o->dtype, perf_op_magnitude(o->op, result, magnitude, o->size), o->size);
    return o->op == TRIB_MEAN ? 2 * perf_number_epsilon(o->dtype) * fabs(result) : 0;
}

struct oracle_answer oracle_reduced(const struct oracle *o, size_t i)
{
    struct oracle_answer a = {.tolerance = 0};
    const bool integer = perf_number_is_integer(o->dtype);

    if (perf_op_is_located(o->op))
        return located(o, i);
    for (int r = 0; r < o->size; r++) {
        const union perf_number x =
            perf_op_operand(o->dtype, o->op, oracle_input(o, r, i));
        a.value = r == 0 ? x : perf_op_combine(o->dtype, o->op, a.value, x);
        a.magnitude += integer ? 0 : fabs(x.f);
    }
    a.value = perf_op_finish(o->dtype, o->op, a.value, o->size);
    if (integer)
        return a;
    a.tolerance = tolerance_of(o, a.value.f, a.magnitude);
    if (o->dtype != TRIB_F64)
        a.value = oracle_rounded(o->dtype, a.value);
    return a;
}

struct oracle_answer oracle_copied(const struct oracle *o, int rank, size_t i)
{
    struct oracle_answer a = {.value = oracle_input(o, rank, i)};

    if (!perf_number_is_integer(o->dtype))
        a.magnitude = fabs(a.value.f);
    return a;
}

bool oracle_equal(trib_dtype_t dtype, const struct oracle_answer *expected,
                  union perf_number got)
{
    double e = expected->value.f;

    if (perf_number_is_integer(dtype))
        return got.i == expected->value.i;
    if (isnan(e) || isnan(got.f))
        return isnan(e) && isnan(got.f);
    if (isinf(e) || isinf(got.f))
        return e == got.f;
    return fabs(got.f - e) <= expected->tolerance;
}
