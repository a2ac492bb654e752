/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A caller's (index, value) pairs by rising index, each index once.
 *
 * Pairs that are so already are taken where they are. Others are sorted, and values of
 * one index are added in the order in which they were given; floats of 16 and 8
 * bits in float32, rounded once.
 */
#ifndef COMM_SORTED_PAIRS_H
#define COMM_SORTED_PAIRS_H

#include "pipeline/payload/payload_pairs.h"

struct trib_pair_order {
    uint64_t index;
    size_t from; /* place among the pairs that were given */
};

/* Memory of a plan for sorted pairs; it grows. */
struct trib_sorted_pairs {
    struct trib_pair_order *order[2]; /* [room] */
    uint64_t *indices; /* [room] */
    uint8_t *values; /* [room] */
    size_t room;
};

void trib_sorted_pairs_free(struct trib_sorted_pairs *s);

/** trib_sorted_pairs_is - true if indices rise, each above the one before. */
bool trib_sorted_pairs_is(const uint64_t *indices, size_t n);

/**
 * trib_sorted_pairs_make - pairs by rising index, each index once.
 *
 * out      in the caller's memory, or in that of s
 * errors   TRIB_ERR_NO_MEMORY; *out is unchanged
 */
trib_status_t trib_sorted_pairs_make(struct trib_sorted_pairs *s, trib_dtype_t dtype,
                                     const struct trib_kernels *kernels,
                                     const struct trib_pairs_input *given,
                                     struct trib_pairs_input *out);

#endif
