/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A service with some jobs, one of them with a hostile name, for tests of its status
 * output.
 */
#ifndef TESTS_AGG_METRICS_SAMPLE_H
#define TESTS_AGG_METRICS_SAMPLE_H

#include "agg/metrics/metrics.h"

#define SAMPLE_S 1000000000ull
#define SAMPLE_T0 (1000 * SAMPLE_S)
#define SAMPLE_EVIL "<img src=x onerror=\"document.title='pwned'\">\\{},"

struct sample {
    struct trib_jobs *jobs;
    struct trib_metrics *metrics;
    struct trib_metrics_writer *writers[2]; /* of train-7 and of the evil job */
};

/**
 * sample_create - create train-7 of ana (384 slots, 4 ranks, rank 2 lags, its operation
 * has stalled for 7 s at SAMPLE_T0 + 60 s), the evil job of eve (64 slots, 2 ranks,
 * idle), and "late" of bob, which waits. Return false on failure.
 */
bool sample_create(struct sample *sample);

/** sample_many - give the first job `ranks` ranks, each with another lag; *view_out is
 * of SAMPLE_T0 + 60 s. */
bool sample_many(struct sample *sample, uint32_t ranks,
                 struct trib_service_view *view_out);

void sample_destroy(struct sample *sample);

#endif
