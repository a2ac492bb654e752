/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sum of pairs. Values of the same position are added in the order of the calls.
 * The result has every position of an input, even if its value is 0.
 */
#ifndef PIPELINE_PAYLOAD_PAIR_SUM_H
#define PIPELINE_PAYLOAD_PAIR_SUM_H

#include <tributary/types.h>

#include "pipeline/payload/encoded_pairs.h"

struct trib_kernels;

struct trib_pair_sum {
    const struct trib_kernels *kernels;
    trib_dtype_t dtype;
    size_t most; /* elements of the longest chunk */
    uint64_t *mask; /* [most / 64 + 1] a bit for each position in the sum */
    uint64_t
        *some; /* [most / 4096 + 1] a bit for each nonzero word of `mask`: finds few
                * pairs of a long chunk without a scan of all of it */
    uint8_t *acc; /* [most] floats with fewer bits as float32, rounded once */
    float *stage; /* [most] those values as float32; NULL for other dtypes */
    uint32_t *at; /* [most] positions of the result */
    uint8_t *values; /* [most] values of the result */
};

/** trib_pair_sum_open - allocate memory for chunks of up to `most` elements;
 * TRIB_ERR_NO_MEMORY. Call trib_pair_sum_close in any case. */
trib_status_t trib_pair_sum_open(struct trib_pair_sum *s, const struct trib_kernels *k,
                                 trib_dtype_t dtype, size_t most);
void trib_pair_sum_close(struct trib_pair_sum *s);

/** trib_pair_sum_bytes - return the memory that trib_pair_sum_open allocates. */
size_t trib_pair_sum_bytes(trib_dtype_t dtype, size_t most);

/** trib_pair_sum_element - return the size of an unrounded value. */
size_t trib_pair_sum_element(trib_dtype_t dtype);

/** trib_pair_sum_add - add pairs with positions below `most`. */
void trib_pair_sum_add(struct trib_pair_sum *s, const struct trib_pairs *p);

/** trib_pair_sum_add_partial - add a result of trib_pair_sum_take_partial from another
 * rank. */
void trib_pair_sum_add_partial(struct trib_pair_sum *s, const struct trib_pairs *p);

/**
 * trib_pair_sum_take - take the sum and clear it.
 *
 * n        elements of the chunk
 * ranks    divisor of a mean; 0: do not divide
 * returns  pairs in the memory of s, valid until the next trib_pair_sum_take
 */
struct trib_pairs trib_pair_sum_take(struct trib_pair_sum *s, size_t n, int ranks);

/** trib_pair_sum_take_partial - take the unrounded sum, with values of
 * trib_pair_sum_element bytes, to be continued on another rank. */
struct trib_pairs trib_pair_sum_take_partial(struct trib_pair_sum *s, size_t n);

#endif
