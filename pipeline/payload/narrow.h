/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Means whose sums may overflow: op mean of f16 or bf16, or with a codec that encodes
 * such numbers. The mean of 40000 and 40000 fits f16; their sum does not.
 *
 * Therefore a rank keeps and sends a partial sum divided by a power of two, at least
 * the number of its contributions. The quotient is no larger than the contributions,
 * and has the bits of the sum unless it becomes denormal. Frames include the exponent
 * (frame.h). A sum weights each contribution by its divisor:
 *
 *     d' = d_0 + d_1 + … , rounded up to a power of two
 *     acc  = (d_0 x_0 + d_1 x_1 + …) / d'        an input has d = 1
 *     mean = (d_0 x_0 + d_1 x_1 + …) / ranks
 *
 * The sum itself is computed in float32. There all weights are multiplied by a power of
 * two that keeps the sum from exceeding its largest contribution.
 */
#ifndef PIPELINE_PAYLOAD_NARROW_H
#define PIPELINE_PAYLOAD_NARROW_H

#include "pipeline/run/chunk.h"

struct trib_kernels;
struct trib_reduce_args;

/** trib_narrow_divisor - return the divisor of a frame's code: 2 to that power. */
static inline uint32_t trib_narrow_divisor(unsigned code)
{
    return 1u << (code & 31);
}

/** trib_narrow_code - return the code of the smallest divisor >= n, at most 2^31. */
static inline uint8_t trib_narrow_code(uint64_t n)
{
    uint8_t code = 0;

    while (code < 31 && (uint64_t)1 << code < n)
        code++;
    return code;
}

/** trib_narrow_is - return true if the run's operation is such a mean; its codec is
 * set. */
bool trib_narrow_is(const struct trib_run *run);

/* The weights of one sum: an input has weight `one`; the weighted sum is divided by
 * divisor. */
struct trib_narrow {
    float one;
    float divisor;
};

/**
 * trib_narrow_begin - compute the weights for REDUCE t, whose frames have arrived.
 *
 * Sets t->divided, the divisor code of t's sum, for the tasks that send or sum it.
 */
struct trib_narrow trib_narrow_begin(struct trib_engine *e, struct trib_run *run,
                                     struct trib_task *t);

/** trib_narrow_before - return the code of the partial sum that t continues; 0 if t
 * reads the input. */
uint8_t trib_narrow_before(const struct trib_run *run, const struct trib_task *t);

static inline float trib_narrow_weight(const struct trib_narrow *sum, uint8_t code)
{
    return sum->one * (float)trib_narrow_divisor(code);
}

/**
 * trib_narrow_sum - sum more sources than a kernel accepts, of floats of 16 or 8 bits.
 *
 * The intermediate sum stays in float32, so the result is rounded once.
 * skip     bytes of each source before the elements to sum
 * all      arguments of the sum, except its sources
 */
void trib_narrow_sum(const struct trib_kernels *k, const struct trib_run *run,
                     const uint8_t *const *src, int n_src, size_t skip,
                     const struct trib_reduce_args *all);

#endif
