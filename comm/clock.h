/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How far the clocks of ranks are apart, so that the traces of all ranks can be laid
 * one above the other.
 *
 * The ranks go through some barriers, and each notes when it came and when it left.
 * Nobody leaves a barrier before all have come, so each barrier bounds from both sides
 * by how much a clock is ahead of that of rank 0; the narrowest bounds count. They are
 * as wide as the shortest way there and back between the two.
 */
#ifndef COMM_CLOCK_H
#define COMM_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_comm;

struct trib_clock {
    int64_t ahead_ns; /* of rank 0's clock; 0 where the bounds allow it */
    uint64_t within_ns; /* by which ahead_ns may be off */
    bool known;
};

/* A barrier, by the clock of one rank. */
struct trib_clock_round {
    uint64_t came_ns, left_ns;
};

/** trib_clock_between - how far a clock is ahead of rank 0's, by n > 0 barriers. */
struct trib_clock trib_clock_between(const struct trib_clock_round *ours,
                                     const struct trib_clock_round *first, size_t n);

/**
 * trib_clock_measure - set comm->rank_clock on all ranks, if one of them keeps a trace.
 *
 * thread   collective over comm; blocks
 * errors   what has ended the communicator; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_clock_measure(struct trib_comm *comm);

#endif
