/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each collective does with its buffers, as tributary/coll.h says; and one more
 * that trib-perf makes of messages: sendrecv, in which each rank sends its vector to
 * the next one and receives that of the one before.
 */
#ifndef PERF_COLLS_H
#define PERF_COLLS_H

#include <stdbool.h>
#include <string.h>

#include <tributary.h>

#define PERF_SENDRECV ((trib_coll_t)TRIB_COLL_COUNT)
#define PERF_COLL_COUNT (TRIB_COLL_COUNT + 1)

enum {
    PERF_SUMS = 1,
    PERF_ROOT = 2,
    PERF_SEND_BLOCKS = 4, /* the input holds a block for each rank */
    PERF_RECV_BLOCKS = 8, /* the result holds a block of each rank */
};

/** perf_coll_does - the flags above. */
static inline unsigned perf_coll_does(trib_coll_t coll)
{
    static const unsigned char flags[PERF_COLL_COUNT] = {
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

static inline const char *perf_coll_name(trib_coll_t coll)
{
    return coll == PERF_SENDRECV ? "sendrecv" : trib_coll_name(coll);
}

/** perf_coll_parse - false: there is no such name. */
static inline bool perf_coll_parse(const char *name, trib_coll_t *coll_out)
{
    if (strcmp(name, "sendrecv") != 0)
        return trib_coll_parse(name, coll_out) == TRIB_OK;
    *coll_out = PERF_SENDRECV;
    return true;
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
