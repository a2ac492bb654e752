/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/common/perf_op.h"

#include <math.h>
#include <string.h>

static bool less(trib_dtype_t dtype, uint64_t a, uint64_t b)
{
    return perf_number_is_signed(dtype) ? (int64_t)a < (int64_t)b : a < b;
}

union perf_number perf_op_operand(trib_dtype_t dtype, trib_op_t op,
                                  union perf_number input)
{
    if (perf_op_is_truth(dtype, op))
        input.i = input.i != 0;
    return input;
}

static uint64_t combine_integers(trib_dtype_t dtype, trib_op_t op, uint64_t a,
                                 uint64_t b)
{
    switch (op) {
    case TRIB_MIN:
        return less(dtype, b, a) ? b : a;
    case TRIB_MAX:
        return less(dtype, a, b) ? b : a;
    case TRIB_PROD:
        return a * b;
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
        return dtype == TRIB_BOOL ? a || b : a + b;
    }
}

static double combine_floats(trib_op_t op, double a, double b)
{
    if (op == TRIB_PROD)
        return a * b;
    if (op != TRIB_MIN && op != TRIB_MAX)
        return a + b;
    if (isnan(a) || isnan(b))
        return (double)NAN;
    return op == TRIB_MIN ? (b < a ? b : a) : (b > a ? b : a);
}

union perf_number perf_op_combine(trib_dtype_t dtype, trib_op_t op, union perf_number a,
                                  union perf_number b)
{
    if (perf_number_is_integer(dtype))
        a.i = combine_integers(dtype, op, a.i, b.i);
    else
        a.f = combine_floats(op, a.f, b.f);
    return a;
}

union perf_number perf_op_finish(trib_dtype_t dtype, trib_op_t op,
                                 union perf_number combined, int ranks)
{
    uint64_t wrapped;

    if (!perf_number_is_integer(dtype)) {
        if (op == TRIB_MEAN)
            combined.f /= ranks;
        return combined;
    }
    perf_number_store(dtype, &wrapped, 0, combined);
    combined = perf_number_load(dtype, &wrapped, 0);
    if (op == TRIB_MEAN)
        combined.i = perf_number_is_signed(dtype)
                         ? (uint64_t)((int64_t)combined.i / ranks)
                         : combined.i / (uint64_t)ranks;
    return combined;
}

/* --- pairs --- */

static int64_t index_of(trib_dtype_t dtype, const void *pair)
{
    const trib_dtype_t index = trib_dtype_size(dtype) == 4 ? TRIB_I32 : TRIB_I64;

    return (int64_t)perf_number_load(index, pair, 1).i;
}

/* Return true if value a comes before b. */
static bool value_precedes(trib_dtype_t dtype, trib_op_t op, union perf_number a,
                           union perf_number b)
{
    if (perf_number_is_integer(dtype))
        return op == TRIB_MINLOC ? less(dtype, a.i, b.i) : less(dtype, b.i, a.i);
    if (isnan(a.f) || isnan(b.f))
        return !isnan(b.f);
    return op == TRIB_MINLOC ? a.f < b.f : a.f > b.f;
}

bool perf_op_precedes(trib_dtype_t dtype, trib_op_t op, const void *a, const void *b)
{
    const union perf_number x = perf_number_load(dtype, a, 0);
    const union perf_number y = perf_number_load(dtype, b, 0);

    if (value_precedes(dtype, op, x, y))
        return true;
    return !value_precedes(dtype, op, y, x) && index_of(dtype, a) < index_of(dtype, b);
}

/* --- rounding --- */

double perf_op_magnitude(trib_op_t op, double result, double sum, int ranks)
{
    switch (op) {
    case TRIB_MEAN:
        return sum / ranks;
    case TRIB_PROD:
        return fabs(result);
    case TRIB_MIN:
    case TRIB_MAX:
        return 0;
    default:
        return sum;
    }
}

/* Each of `ranks` sums rounds by at most half a spacing; allow twice that. */
double perf_op_tolerance(trib_dtype_t dtype, double magnitude, int ranks)
{
    if (!(magnitude > 0))
        return 0;
    return (ranks + 1) *
           (perf_number_epsilon(dtype) * magnitude + perf_number_smallest(dtype));
}
