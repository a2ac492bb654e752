/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each collective does with its buffers, as tributary/coll.h says.
 */
#ifndef PERF_COLLS_H
#define PERF_COLLS_H

#include <stdbool.h>

#include <tributary.h>

enum {
    PERF_SUMS = 1,
    PERF_ROOT = 2,
    PERF_SEND_BLOCKS = 4, /* the input holds a block for each rank */
    PERF_RECV_BLOCKS = 8, /* the result holds a block of each rank */
};

/** perf_coll_does - the flags above. */
static inline unsigned perf_coll_does(trib_coll_t coll)
{
    static const unsigned char flags[TRIB_COLL_COUNT] = {
        [TRIB_ALLREDUCE] = PERF_SUMS,
        [TRIB_REDUCE] = PERF_SUMS | PERF_ROOT,
        [TRIB_BROADCAST] = PERF_ROOT,
        [TRIB_ALLGATHER] = PERF_RECV_BLOCKS,
        [TRIB_REDUCE_SCATTER] = PERF_SUMS | PERF_SEND_BLOCKS,
        [TRIB_GATHER] = PERF_ROOT | PERF_RECV_BLOCKS,
        [TRIB_SCATTER] = PERF_ROOT | PERF_SEND_BLOCKS,
        [TRIB_ALLTOALL] = PERF_SEND_BLOCKS | PERF_RECV_BLOCKS,
        [TRIB_SCAN] = PERF_SUMS,
        [TRIB_EXSCAN] = PERF_SUMS,
    };

    return flags[coll];
}

static inline bool perf_coll_sums(trib_coll_t coll)
{
    return perf_coll_does(coll) & PERF_SUMS;
}

/** perf_coll_spans - true if a buffer has a block for each rank: sizes are of all. */
static inline bool perf_coll_spans(trib_coll_t coll)
{
    return perf_coll_does(coll) & (PERF_SEND_BLOCKS | PERF_RECV_BLOCKS);
}

#endif
