/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-perf allreduce --overlap: how near an all-reduce comes to what its slowest stage
 * alone allows, and how much of it a computation hides.
 *
 *     overlap_measure.c stages alone, the plan fed part by part beside a computation
 *     overlap_bounds.c  arithmetic, sentences
 *
 * A stage's rate C is in bytes of the vector a second: those of an operation over the
 * time that the stage takes for its share of them, alone. Of the link that is B / r,
 * with B bytes a second each way and r coded bytes sent for each byte of the vector.
 */
#ifndef PERF_OVERLAP_H
#define PERF_OVERLAP_H

#include "perf/perf.h"

enum perf_stage {
    PERF_STAGE_ENCODE,
    PERF_STAGE_LINK,
    PERF_STAGE_SUM,
    PERF_STAGE_DECODE,
    PERF_STAGES
};

/* Bytes that go through the stages of a rank in one operation. */
struct perf_overlap_work {
    double vector; /* the whole vector */
    double of[PERF_STAGES]; /* uncoded; of the link coded, with frames */
};

/* Bytes a second of each stage alone; a stage without work may have any. */
struct perf_overlap_alone {
    double Bps[PERF_STAGES];
    double link_cpu_s; /* processor time of a rank for each byte that it sends */
};

/**
 * perf_overlap_work - by the schedule: `flat`, in which each rank sums all, or one in
 * which each finishes its part.
 *
 * coded    elements are encoded and decoded
 * wire     bytes that a rank sends in one operation
 */
struct perf_overlap_work perf_overlap_work(double vector, int ranks, bool flat,
                                           bool coded, double wire);

/** perf_overlap_bounds - fill the rates, the bounds and what was reached of them, by an
 * operation that takes `us`. */
void perf_overlap_bounds(const struct perf_overlap_work *work,
                         const struct perf_overlap_alone *alone, double us,
                         struct perf_overlap *out);

/** perf_overlap_hidden - the part of `comm` seconds that `both` do not show beside
 * `compute` alone; at most 1, below 0 where both together take longer than one after
 * the other. */
double perf_overlap_hidden(double comm, double compute, double both);

const char *perf_overlap_stage_name(enum perf_stage stage);

/** perf_overlap_print - the lines of the table. */
void perf_overlap_print(const struct perf_overlap *o);

/** perf_overlap_measure - all of it, with the plan of op, which takes out->us.p50;
 * collective. */
trib_status_t perf_overlap_measure(struct perf_operation *op, struct perf_result *out);

#endif
