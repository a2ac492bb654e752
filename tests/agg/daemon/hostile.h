/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by hostile.c, hostile_alone.c and hostile_unauthenticated.c. */
#ifndef TESTS_AGG_DAEMON_HOSTILE_H
#define TESTS_AGG_DAEMON_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/** hostile_goes_on - return true until the file exists. */
bool hostile_goes_on(const char *file);

/** hostile_alone - attack with connections without a job; return an exit code. */
int hostile_alone(const char *way, const char *file);

/** hostile_unauthenticated - attack with connections that never authenticate; return an
 * exit code. */
int hostile_unauthenticated(const char *way, const char *file);

/** hostile_noise - fill memory with random bytes. */
static inline void hostile_noise(void *to, size_t n)
{
    static uint64_t x = 88172645463325252u; /* xorshift: Marsaglia, J. Stat. Soft.
                                             * 2003 */

    for (size_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        ((uint8_t *)to)[i] = (uint8_t)x;
    }
}

#endif
