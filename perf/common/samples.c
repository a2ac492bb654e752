/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clocks, percentiles of samples, and bandwidths.
 */
#include "perf/common/samples.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

double perf_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double perf_cpu_seconds(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

int perf_by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

double perf_cpu_seconds_of(pid_t pid)
{
    char path[64], text[1024];
    unsigned long user, system;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return (double)NAN;
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    /* Fields 14 and 15 follow the name in brackets, which may have any characters. */
    const char *name_end = strrchr(text, ')');
    if (name_end == NULL ||
        sscanf(name_end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
               &user, &system) != 2)
        return (double)NAN;
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* Nearest rank: the smallest value that permille / 1000 of the values do not exceed. */
static double percentile(const double *sorted, size_t n, size_t permille)
{
    size_t rank = (n * permille + 999) / 1000;
    assert(rank >= 1 && rank <= n);
    return sorted[rank - 1];
}

void perf_summarise(double *values, size_t n, struct perf_summary *out)
{
    memset(out, 0, sizeof(*out));
    if (n == 0)
        return;
    qsort(values, n, sizeof(*values), perf_by_value);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    out->n = n;
    out->mean = sum / (double)n;
    out->p25 = percentile(values, n, 250);
    out->p50 = percentile(values, n, 500);
    out->p75 = percentile(values, n, 750);
    out->p95 = percentile(values, n, 950);
    out->p99 = percentile(values, n, 990);
    out->p999 = percentile(values, n, 999);
    out->min = values[0];
    out->max = values[n - 1];
}

double perf_bus_factor(trib_coll_t coll, int ranks)
{
    double share = (ranks - 1) / (double)ranks;
    switch (coll) {
    case TRIB_ALLREDUCE:
        return 2 * share;
    case TRIB_ALLGATHER:
    case TRIB_REDUCE_SCATTER:
    case TRIB_GATHER:
    case TRIB_SCATTER:
    case TRIB_ALLTOALL:
        return share;
    default:
        return 1;
    }
}
