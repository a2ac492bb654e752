/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Warm-up, samples and check of one size.
 */
#ifndef PERF_COLL_MEASURE_H
#define PERF_COLL_MEASURE_H

#include <stdbool.h>
#include <stddef.h>

#include <tributary.h>

#include "perf/coll/arguments.h"
#include "perf/common/progress.h"
#include "perf/common/samples.h"

enum { PERF_LAYERS = 32 }; /* layers that are fed to a plan, the last one first */

/* Timeline of rank 0 in the median round of computing and summing together. */
struct perf_timeline {
    double from_us[PERF_LAYERS], to_us[PERF_LAYERS]; /* computation of each layer */
    double took_us;
};

/* A sum whose vector is fed layer by layer during a computation. */
struct perf_hidden {
    double comm_us, compute_us, both_us; /* sum alone, computation alone, together */
    double part; /* fraction of the sum's time that is hidden */
    struct perf_timeline timeline;
};

/* See overlap.h. Rates are GB/s of the vector; 0: the stage has no work. */
struct perf_overlap {
    bool measured;
    double stage_GBps[4]; /* enum perf_stage, each alone */
    int narrowest; /* slowest stage */
    double bound_GBps, reached_GBps, part;
    double core_GBps, core_part; /* bound if one core runs all stages */
    struct perf_hidden here, elsewhere; /* computation on this thread; or this thread
                                         * sleeps */
};

struct perf_result {
    size_t bytes;
    size_t count;
    long batch; /* calls per sample */
    struct perf_summary us;
    double algbw_GBps;
    double busbw_GBps;
    double wire_bytes; /* sent by a rank per operation, mean over ranks */
    double ratio; /* dense over encoded payload; 1 without a codec */
    double cpu_us; /* processor time of a rank per operation, mean over ranks */
    double nmse; /* maximum over ranks; NAN: not checked */
    double wrong; /* wrong elements of all ranks; NAN: not checked */
    double nmse_limit; /* limit that nmse exceeded on some rank; 0: none */
    double lost; /* ranks missing from a result; maximum over results */
    char explain[1024];
    struct perf_overlap overlap;
};

/** perf_measure - measure one size. Collective; only rank 0 gets all of *out. */
trib_status_t perf_measure(trib_comm_t *comm, const struct perf_args *args,
                           size_t bytes, perf_progress_fn progress, void *arg,
                           struct perf_result *out);

#endif
