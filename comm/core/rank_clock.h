/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's clock relative to rank 0's; comm/life/clock.h measures it.
 */
#ifndef COMM_CORE_RANK_CLOCK_H
#define COMM_CORE_RANK_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct trib_clock {
    int64_t ahead_ns; /* ahead of rank 0's clock; 0 if the bounds allow it */
    uint64_t within_ns; /* uncertainty of ahead_ns */
    bool known;
};

#endif
