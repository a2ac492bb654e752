/* SPDX-License-Identifier: BSD-3-Clause */
/* How processor time grows with the number of things. */
#ifndef TESTS_HARNESS_GROWTH_H
#define TESTS_HARNESS_GROWTH_H

#include <time.h>

#include "tests/harness/tribtest.h"

/* Return the processor time of this thread in ns. */
static inline uint64_t growth_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Fail if the time for n things grows with the square of n. It is measured again if it
 * seems to: other processes may have displaced the data from the caches. */
static inline void growth_is_linear(uint64_t (*measure)(uint32_t n))
{
    enum { FEW = 128, TIMES = 16, TRIES = 5 };
    double ratio = 0;

    for (int tries = 0; tries < TRIES; tries++) {
        const uint64_t few_ns = measure(FEW), many_ns = measure(TIMES * FEW);
        ratio = (double)many_ns / (double)few_ns;
        if (ratio <= TIMES * 4)
            return;
    }
    fail_msg("%d times as many take %.0f times as long", TIMES, ratio);
}

#endif
