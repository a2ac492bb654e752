/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time. Every wait of the library has a deadline on this clock; TRIB_NEVER if a setting
 * disables the limit.
 */
#ifndef BASE_TIME_H
#define BASE_TIME_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/** trib_now_ns - return nanoseconds of a monotonic clock; about 20 ns per call. */
static inline uint64_t trib_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/** trib_now_coarse_ns - return the same clock at its last tick, up to 10 ms ago; about
 * 6 ns per call. */
static inline uint64_t trib_now_coarse_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/** trib_boot_ns - return the time since boot, including suspend, which trib_now_ns
 * excludes. */
static inline uint64_t trib_boot_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/** trib_deadline_ms - return the time `ms` milliseconds from now; ms < 0 counts as
 * 0. */
static inline uint64_t trib_deadline_ms(int ms)
{
    return trib_now_ns() + (ms > 0 ? (uint64_t)ms * 1000000u : 0);
}

#define TRIB_NEVER UINT64_MAX /* infinite deadline or duration */

/** trib_limit_ns - convert a timeout setting to nanoseconds; 0 ms: TRIB_NEVER. */
static inline uint64_t trib_limit_ns(int ms)
{
    return ms > 0 ? (uint64_t)ms * 1000000u : TRIB_NEVER;
}

/** trib_limit_sum - add two timeouts in ms; 0 (no limit) if either is 0. */
static inline int trib_limit_sum(int ms, int more_ms)
{
    return ms > 0 && more_ms > 0 ? ms + more_ms : 0;
}

/** trib_deadline_later - add ns to a deadline; saturates at TRIB_NEVER. */
static inline uint64_t trib_deadline_later(uint64_t deadline, uint64_t ns)
{
    return ns < TRIB_NEVER - deadline ? deadline + ns : TRIB_NEVER;
}

/** trib_limit_deadline - return the deadline of a timeout setting that starts now; 0
 * ms: TRIB_NEVER. */
static inline uint64_t trib_limit_deadline(int ms)
{
    return trib_deadline_later(trib_now_ns(), trib_limit_ns(ms));
}

/** trib_deadline_passed - return true if `deadline` has passed. */
static inline bool trib_deadline_passed(uint64_t deadline)
{
    return trib_now_ns() >= deadline;
}

/** trib_deadline_left_ms - return milliseconds until `deadline`, rounded up; 0 if
 * passed; at most INT_MAX, 24 days. */
static inline int trib_deadline_left_ms(uint64_t deadline)
{
    uint64_t now = trib_now_ns();
    uint64_t left = now >= deadline ? 0 : (deadline - now - 1) / 1000000u + 1;

    return left < INT_MAX ? (int)left : INT_MAX;
}

/**
 * trib_gap_ns - return how long this process did not run, e.g. while the whole job was
 * stopped.
 *
 * For loops that read the clock often: return the time since *now and update *now; 0 if
 * less than least_ms. Callers extend their deadlines by the result.
 */
static inline uint64_t trib_gap_ns(uint64_t *now, int least_ms)
{
    uint64_t before = *now;

    *now = trib_now_ns();
    return *now - before >= (uint64_t)least_ms * 1000000u ? *now - before : 0;
}

/** trib_pause - tell the core that this is a spin loop. */
static inline void trib_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
