/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inputs of a collective that is measured, and its right result.
 */
#ifndef PERF_PERF_ORACLE_H
#define PERF_PERF_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary.h>

#include "perf/loss.h"

/* Elements that are all zeros, or of which none need be. */
#define PERF_ORACLE_BLOCK 256

/* Inputs are a function of (seed, rank, element): each rank can make all of them. */
struct perf_oracle {
    trib_coll_t coll;
    trib_dtype_t dtype;
    trib_op_t op;
    double parameter; /* as in trib_desc_t */
    size_t count; /* as in trib_desc_t */
    int rank;
    int ranks;
    int root;
    struct perf_loss loss; /* none: an element may be off by rounding only */
    uint64_t seed;
    bool smooth; /* floats are those of perf/smooth.h, else about normal */
    double empty; /* part of the blocks of an input that is zeros, by chance; 0: none */
    bool same_blocks; /* of all ranks; else each has blocks of its own */
};

struct perf_verdict {
    double error2; /* sum of squared errors */
    double reference2; /* sum of squared expected values */
    double error2_limit; /* of what the codec may lose; INFINITY: none is known */
    uint64_t wrong; /* elements, ranks that are lost, an error2 above its limit */
    uint64_t wrong_elements; /* of these, the elements */
    size_t first; /* of them; what it is, what it must be, and how far it may be from
                   * that */
    double got, want, tolerance;
    uint64_t lost; /* ranks whose inputs are not in the result as they must be */
    uint64_t hash; /* of the result's bytes */
};

/** perf_op_is_located - true if an op is of pairs of a value and its index. */
static inline bool perf_op_is_located(trib_op_t op)
{
    return op == TRIB_MINLOC || op == TRIB_MAXLOC;
}

/** perf_oracle_inputs, _outputs - elements of the input and result of o->rank. */
size_t perf_oracle_inputs(const struct perf_oracle *o);
size_t perf_oracle_outputs(const struct perf_oracle *o);

/** perf_oracle_fill - elements first … first + n of the input of `rank`. */
void perf_oracle_fill(const struct perf_oracle *o, int rank, size_t first, size_t n,
                      void *out);

/** perf_oracle_number - element i of a vector; a 64-bit integer may be rounded. */
double perf_oracle_number(trib_dtype_t dtype, const void *vector, size_t i);

/**
 * perf_oracle_compare - the result of o->rank against what it must be.
 *
 * loss.h says which losses of codecs are seen. Without memory for it one is wrong.
 */
void perf_oracle_compare(const struct perf_oracle *o, const void *result,
                         struct perf_verdict *out);

#endif
