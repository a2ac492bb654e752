/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of collectives: how each uses its buffers. Code queries this table instead
 * of naming collectives.
 */
#ifndef COLLECTIVES_SCHEDULE_COLL_TRAITS_H
#define COLLECTIVES_SCHEDULE_COLL_TRAITS_H

#include <stdbool.h>

#include <tributary/types.h>

enum {
    TRIB_COLL_SUMS = 1, /* reduces the ranks' contributions */
    TRIB_COLL_ROOT = 2, /* has a root */
    TRIB_COLL_SEND_BLOCKS = 4, /* the input has a block for each rank; with a root, only
                                * the root's input */
    TRIB_COLL_RECV_BLOCKS = 8, /* the result has a block of each rank; with a root, only
                                * the root's result */
    TRIB_COLL_PREFIX = 16, /* a rank's result covers the ranks up to it, or before it */
};

/** trib_coll_traits - return the flags above; 0 for an invalid value. */
static inline unsigned trib_coll_traits(trib_coll_t coll)
{
    static const unsigned char traits[TRIB_COLL_COUNT] = {
        [TRIB_ALLREDUCE] = TRIB_COLL_SUMS,
        [TRIB_REDUCE] = TRIB_COLL_SUMS | TRIB_COLL_ROOT,
        [TRIB_BROADCAST] = TRIB_COLL_ROOT,
        [TRIB_ALLGATHER] = TRIB_COLL_RECV_BLOCKS,
        [TRIB_REDUCE_SCATTER] = TRIB_COLL_SUMS | TRIB_COLL_SEND_BLOCKS,
        [TRIB_BARRIER] = 0,
        [TRIB_GATHER] = TRIB_COLL_ROOT | TRIB_COLL_RECV_BLOCKS,
        [TRIB_SCATTER] = TRIB_COLL_ROOT | TRIB_COLL_SEND_BLOCKS,
        [TRIB_ALLTOALL] = TRIB_COLL_SEND_BLOCKS | TRIB_COLL_RECV_BLOCKS,
        [TRIB_SCAN] = TRIB_COLL_SUMS | TRIB_COLL_PREFIX,
        [TRIB_EXSCAN] = TRIB_COLL_SUMS | TRIB_COLL_PREFIX,
    };

    return (unsigned)coll < TRIB_COLL_COUNT ? traits[coll] : 0;
}

/** trib_coll_sums - return true if the collective reduces the ranks' contributions. */
static inline bool trib_coll_sums(trib_coll_t coll)
{
    return trib_coll_traits(coll) & TRIB_COLL_SUMS;
}

/** trib_coll_has_root - return true if trib_desc_t.root applies to this collective. */
static inline bool trib_coll_has_root(trib_coll_t coll)
{
    return trib_coll_traits(coll) & TRIB_COLL_ROOT;
}

/** trib_coll_is_blocked - return true if one buffer has a block of `count` elements for
 * each rank. */
static inline bool trib_coll_is_blocked(trib_coll_t coll)
{
    return trib_coll_traits(coll) & (TRIB_COLL_SEND_BLOCKS | TRIB_COLL_RECV_BLOCKS);
}

/** trib_coll_is_prefix - return true if a rank's result covers the ranks up to it, or
 * before it. */
static inline bool trib_coll_is_prefix(trib_coll_t coll)
{
    return trib_coll_traits(coll) & TRIB_COLL_PREFIX;
}

#endif
