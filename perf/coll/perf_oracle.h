/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inputs of a measured collective, and its right result.
 */
#ifndef PERF_COLL_PERF_ORACLE_H
#define PERF_COLL_PERF_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary.h>

#include "perf/coll/loss.h"

/* Elements per block that is all zeros or not. */
#define PERF_ORACLE_BLOCK 256

/* Inputs are a function of (seed, rank, element), so each rank can generate all of
 * them. */
struct perf_oracle {
    trib_coll_t coll;
    trib_dtype_t dtype;
    trib_op_t op;
    double parameter; /* as in trib_desc_t */
    size_t count; /* as in trib_desc_t */
    int rank;
    int ranks;
    int root;
    struct perf_loss loss; /* PERF_LOSS_NONE: an element may be off by rounding only */
    uint64_t seed;
    bool smooth; /* floats are from perf/common/smooth.h, else roughly normal */
    double empty; /* fraction of the input's blocks that are zeros, at random; 0:
                   * none */
    bool same_blocks; /* all ranks have the same zero blocks */
};

struct perf_verdict {
    double error2; /* sum of squared errors */
    double reference2; /* sum of squared expected values */
    double error2_limit; /* limit of error2 for the codec; INFINITY: none known */
    uint64_t wrong; /* elements, lost ranks, and 1 if error2 is above its limit */
    uint64_t wrong_elements; /* wrong elements alone */
    size_t first; /* index of the first wrong element; then its value, the right one,
                   * and the tolerance */
    double got, want, tolerance;
    uint64_t lost; /* ranks whose input is missing or wrong in the result */
    uint64_t hash; /* hash of the result's bytes */
};

/** perf_oracle_inputs, _outputs - return the elements in the input and result of
 * o->rank. */
size_t perf_oracle_inputs(const struct perf_oracle *o);
size_t perf_oracle_outputs(const struct perf_oracle *o);

/** perf_oracle_fill - write elements first … first + n of the input of `rank`. */
void perf_oracle_fill(const struct perf_oracle *o, int rank, size_t first, size_t n,
                      void *out);

/** perf_oracle_number - return element i of a vector; 64-bit integers may be
 * rounded. */
double perf_oracle_number(trib_dtype_t dtype, const void *vector, size_t i);

/**
 * perf_oracle_compare - compare the result of o->rank with the right one.
 *
 * loss.h says which errors of codecs are detected. Out of memory counts as one wrong.
 */
void perf_oracle_compare(const struct perf_oracle *o, const void *result,
                         struct perf_verdict *out);

#endif
