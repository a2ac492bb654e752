/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Means whose sums may not fit: op mean of f16 or bf16, or by a codec whose code words
 * are such numbers. The mean of 40000 and 40000 is a number of f16; their sum is none.
 *
 * So a rank keeps and sends an unfinished sum divided by a power of two that is at
 * least the number of its contributions. The quotient is no larger than they are, and
 * has the bits of the sum unless it becomes a denormal. Frames tell the power
 * (frame.h). A sum weighs each contribution by its divisor:
 *
 *     d' = d_0 + d_1 + … , rounded up to a power of two
 *     acc  = (d_0 x_0 + d_1 x_1 + …) / d'        an input has d = 1
 *     mean = (d_0 x_0 + d_1 x_1 + …) / ranks
 *
 * In the sum itself, which is in float32, all weights are multiplied by a power of two
 * that keeps it from growing beyond its largest contribution.
 */
#ifndef PIPELINE_PAYLOAD_NARROW_H
#define PIPELINE_PAYLOAD_NARROW_H

#include "pipeline/engine/chunk.h"

struct trib_kernels;
struct trib_reduce_args;

/** trib_narrow_divisor - the divisor that a frame's code means: 2 to that power. */
static inline uint32_t trib_narrow_divisor(unsigned code)
{
    return 1u << (code & 31);
}

/** trib_narrow_code - the code of the least divisor that is at least n, and at most
 * 2^31. */
static inline uint8_t trib_narrow_code(uint64_t n)
{
    uint8_t code = 0;

    while (code < 31 && (uint64_t)1 << code < n)
        code++;
    return code;
}

/** trib_narrow_is - true if the run's operation is such a mean; its codec is known. */
bool trib_narrow_is(const struct trib_run *run);

/* The weights of one sum: a contribution weighs `one`; the weighed sum is divided by
 * divisor. */
struct trib_narrow {
    float one;
    float divisor;
};

/**
 * trib_narrow_begin - weigh the contributions of REDUCE t, whose frames are there.
 *
 * Notes the divisor of the sum that t makes, for the tasks that send or sum it.
 */
struct trib_narrow trib_narrow_begin(struct trib_engine *e, struct trib_run *run,
                                     struct trib_task *t);

/** trib_narrow_before - the code of the sum so far that t takes, as in a frame; 0 if t
 * takes the input. */
uint8_t trib_narrow_before(const struct trib_run *run, const struct trib_task *t);

static inline float trib_narrow_weight(const struct trib_narrow *sum, uint8_t code)
{
    return sum->one * (float)trib_narrow_divisor(code);
}

/**
 * trib_narrow_sum - sum more sources than a kernel takes, of floats of 16 or 8 bits.
 *
 * The sum so far stays in float32, so the result is rounded once.
 * all      all but its sources is set
 */
void trib_narrow_sum(const struct trib_kernels *k, const struct trib_run *run,
                     const uint8_t *const *src, int n_src,
                     const struct trib_reduce_args *all);

#endif
