/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffer layout of each collective, as tributary/coll.h defines it, and of sendrecv.
 * sendrecv is made of messages: each rank sends its vector to the next rank and
 * receives one from the previous rank.
 */
#ifndef PERF_COLL_COLLS_H
#define PERF_COLL_COLLS_H

#include <stdbool.h>
#include <string.h>

#include <tributary.h>

#define PERF_SENDRECV ((trib_coll_t)TRIB_COLL_COUNT)
#define PERF_COLL_COUNT (TRIB_COLL_COUNT + 1)

enum {
    PERF_SUMS = 1,
    PERF_ROOT = 2,
    PERF_SEND_BLOCKS = 4, /* input: one block per rank */
    PERF_RECV_BLOCKS = 8, /* result: one block per rank */
};

/** perf_coll_does - return the flags of a collective. */
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

/** perf_coll_parse - return false if the name is unknown. */
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

/** perf_coll_spans - return true if a buffer has a block per rank; sizes then count all
 * blocks. */
static inline bool perf_coll_spans(trib_coll_t coll)
{
    return perf_coll_does(coll) & (PERF_SEND_BLOCKS | PERF_RECV_BLOCKS);
}

#endif
