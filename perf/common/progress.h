/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress line of a sweep over sizes.
 */
#ifndef PERF_COMMON_PROGRESS_H
#define PERF_COMMON_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

/* Called on rank 0 between groups of samples. */
typedef void (*perf_progress_fn)(void *arg, size_t bytes, long done, long samples);

struct perf_progress {
    bool on;
    bool shown;
    double start;
    double last;
    size_t at; /* index in the sizes */
    size_t sizes;
    size_t begun; /* index of the size that size_start and size_done describe, from 1 */
    double size_start;
    long size_done; /* samples done at size_start */
};

/** perf_progress_start - start a progress line on stderr if `speaks` and stderr is a
 * terminal. */
void perf_progress_start(struct perf_progress *p, size_t sizes, bool speaks);

/**
 * perf_progress_show - a perf_progress_fn; arg is the struct perf_progress.
 *
 * Prints nothing in the first two seconds, then at most five times a second.
 */
void perf_progress_show(void *arg, size_t bytes, long done, long samples);
void perf_progress_clear(struct perf_progress *p);

#endif
