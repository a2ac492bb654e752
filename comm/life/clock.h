/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clock offsets between ranks, to align the traces of all ranks.
 *
 * The ranks pass some barriers, and each records when it entered and left. No rank
 * leaves a barrier before all have entered, so each barrier bounds a clock's offset
 * from rank 0's on both sides; the narrowest bounds count. They are as wide as the
 * shortest round trip between the two ranks.
 */
#ifndef COMM_LIFE_CLOCK_H
#define COMM_LIFE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

#include "comm/core/rank_clock.h"

struct trib_comm;

/* A barrier in the local time of one rank. */
struct trib_clock_round {
    uint64_t came_ns, left_ns;
};

/** trib_clock_between - compute a clock's offset from rank 0's, from n > 0 barriers. */
struct trib_clock trib_clock_between(const struct trib_clock_round *ours,
                                     const struct trib_clock_round *first, size_t n);

/**
 * trib_clock_measure - set comm->rank_clock on all ranks if one of them records a
 * trace.
 *
 * thread   collective over comm; blocks
 * errors   the error that failed the communicator; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_clock_measure(struct trib_comm *comm);

#endif
