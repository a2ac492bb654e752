/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sum of pairs: values of the same position are added, in the order of the calls,
 * and positions that one of them has are in the result, whatever their value.
 */
#ifndef PIPELINE_PAYLOAD_PAIR_SUM_H
#define PIPELINE_PAYLOAD_PAIR_SUM_H

#include <tributary/types.h>

#include "pipeline/payload/pair_word.h"

struct trib_kernels;

struct trib_pair_sum {
    const struct trib_kernels *kernels;
    trib_dtype_t dtype;
    size_t most; /* elements of the longest chunk */
    uint64_t *mask; /* [most / 64 + 1] a bit for each position that is in the sum */
    uint64_t
        *some; /* [most / 4096 + 1] a bit for each word of `mask` that is not 0: few
                     * pairs of a long chunk are found without a look at all of it */
    uint8_t *acc; /* [most] floats of fewer bits as float32, rounded once */
    float *stage; /* [most] their values as float32; NULL of other dtypes */
    uint32_t *at; /* [most] positions of the result */
    uint8_t *values; /* [most] values of the result */
};

/** trib_pair_sum_open - memory for chunks of up to `most` elements; TRIB_ERR_NO_MEMORY.
 * trib_pair_sum_close follows in any case. */
trib_status_t trib_pair_sum_open(struct trib_pair_sum *s, const struct trib_kernels *k,
                                 trib_dtype_t dtype, size_t most);
void trib_pair_sum_close(struct trib_pair_sum *s);

/** trib_pair_sum_bytes - the memory that trib_pair_sum_open takes. */
size_t trib_pair_sum_bytes(trib_dtype_t dtype, size_t most);

/** trib_pair_sum_element - the bytes of a value that is not rounded yet. */
size_t trib_pair_sum_element(trib_dtype_t dtype);

/** trib_pair_sum_add - add pairs, whose positions are below `most`. */
void trib_pair_sum_add(struct trib_pair_sum *s, const struct trib_pairs *p);

/** trib_pair_sum_add_partial - add what trib_pair_sum_take_partial has given
 * elsewhere. */
void trib_pair_sum_add_partial(struct trib_pair_sum *s, const struct trib_pairs *p);

/**
 * trib_pair_sum_take - take the sum, which is empty from then on.
 *
 * n        elements of the chunk
 * ranks    divide by it, as a mean does; 0: do not
 * returns  pairs in the memory of s, until the next trib_pair_sum_take
 */
struct trib_pairs trib_pair_sum_take(struct trib_pair_sum *s, size_t n, int ranks);

/** trib_pair_sum_take_partial - take the sum as it is, with values of
 * trib_pair_sum_element bytes: more is added to it elsewhere. */
struct trib_pairs trib_pair_sum_take_partial(struct trib_pair_sum *s, size_t n);

#endif
