/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of collectives: what each does with its buffers. Whoever needs to know asks
 * here, and names no collective.
 */
#ifndef SCHEDULE_COLL_TRAITS_H
#define SCHEDULE_COLL_TRAITS_H

#include <stdbool.h>

#include <tributary/types.h>

enum {
    TRIB_COLL_SUMS = 1, /* reduces what the ranks give */
    TRIB_COLL_ROOT = 2, /* has a root */
    TRIB_COLL_SEND_BLOCKS = 4, /* the input holds a block for each rank: of a collective
                                * with a root, only there */
    TRIB_COLL_RECV_BLOCKS = 8, /* the result holds a block of each rank, likewise */
    TRIB_COLL_PREFIX = 16, /* a rank's result is of the ranks up to it, or before it */
};

/** trib_coll_traits - the flags above; 0 for a value that is no collective. */
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

/** trib_coll_sums - true if the collective reduces what the ranks give. */
static inline bool trib_coll_sums(trib_coll_t coll)
{
    return trib_coll_traits(coll) & TRIB_COLL_SUMS;
}

/** trib_coll_has_root - true if trib_desc_t.root means something for this
 * collective. */
static inline bool trib_coll_has_root(trib_coll_t coll)
{
    return trib_coll_traits(coll) & TRIB_COLL_ROOT;
}

/** trib_coll_is_blocked - true if one buffer holds a block of `count` elements for each
 * rank. */
static inline bool trib_coll_is_blocked(trib_coll_t coll)
{
    return trib_coll_traits(coll) & (TRIB_COLL_SEND_BLOCKS | TRIB_COLL_RECV_BLOCKS);
}

/** trib_coll_is_prefix - true if a rank's result is of the ranks up to it, or before
 * it. */
static inline bool trib_coll_is_prefix(trib_coll_t coll)
{
    return trib_coll_traits(coll) & TRIB_COLL_PREFIX;
}

#endif
