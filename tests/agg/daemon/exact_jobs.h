/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs with exact sums: small integers, and an exit with an error message when a call
 * fails.
 */
#ifndef TESTS_AGG_DAEMON_EXACT_JOBS_H
#define TESTS_AGG_DAEMON_EXACT_JOBS_H

#include <stdio.h>
#include <stdlib.h>

#include <tributary.h>

static inline void must(const trib_comm_t *comm, trib_status_t st, const char *what)
{
    if (st == TRIB_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, trib_last_error(comm));
    exit(1);
}

/** value - return element i of a rank in a step: -8 to 8. */
static inline float value(int rank, long step, int i)
{
    return (float)((rank * 5 + step * 3 + i) % 17 - 8);
}

#endif
