/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clocks, and percentiles of samples. A sample is the time of one call on the slowest
 * rank; if one call is too short for the clock, of a batch of calls.
 */
#ifndef PERF_COMMON_SAMPLES_H
#define PERF_COMMON_SAMPLES_H

#include <stddef.h>
#include <sys/types.h>

#include <tributary.h>

/** perf_now - return the seconds of the monotonic clock. */
double perf_now(void);

/** perf_cpu_seconds - return the processor time of all threads of this process. */
double perf_cpu_seconds(void);

/** perf_cpu_seconds_of - return the processor time of a process on this host; NAN:
 * unknown. */
double perf_cpu_seconds_of(pid_t pid);

/** perf_by_value - compare two doubles, for qsort. */
int perf_by_value(const void *x, const void *y);

struct perf_summary {
    size_t n;
    double p25, p50, p75, p95, p99, p999, min, max, mean;
};

/**
 * perf_summarise - sort the values and compute percentiles by nearest rank.
 *
 * Below 100 samples p99 is the maximum; below 1000, p99.9 is. n == 0 gives zeros.
 */
void perf_summarise(double *values, size_t n, struct perf_summary *out);

/**
 * perf_bus_factor - return bus bandwidth over algorithm bandwidth, as in nccl-tests.
 *
 * For all-gather and reduce-scatter, bytes are the size of the whole vector.
 */
double perf_bus_factor(trib_coll_t coll, int ranks);

#endif
