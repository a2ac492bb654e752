/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A caller's (index, value) pairs sorted by index, without duplicates.
 *
 * Sorted pairs are used in place. Others are sorted, and values of equal indices are
 * added in the order given; 16- and 8-bit floats in float32, rounded once.
 */
#ifndef COMM_KINDS_SORTED_PAIRS_H
#define COMM_KINDS_SORTED_PAIRS_H

#include "pipeline/payload/payload_pairs.h"

struct trib_pair_order {
    uint64_t index;
    size_t from; /* position among the given pairs */
};

/* A plan's memory for sorted pairs; grows as needed. */
struct trib_sorted_pairs {
    struct trib_pair_order *order[2]; /* [room] */
    uint64_t *indices; /* [room] */
    uint8_t *values; /* [room] */
    size_t room;
};

void trib_sorted_pairs_free(struct trib_sorted_pairs *s);

/** trib_sorted_pairs_is - return true if indices strictly increase. */
bool trib_sorted_pairs_is(const uint64_t *indices, size_t n);

/**
 * trib_sorted_pairs_make - sort pairs by index and merge duplicates.
 *
 * out      in the caller's memory, or in that of s
 * errors   TRIB_ERR_NO_MEMORY; *out is unchanged
 */
trib_status_t trib_sorted_pairs_make(struct trib_sorted_pairs *s, trib_dtype_t dtype,
                                     const struct trib_kernels *kernels,
                                     const struct trib_pairs_input *given,
                                     struct trib_pairs_input *out);

#endif
