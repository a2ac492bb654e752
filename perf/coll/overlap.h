/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-perf allreduce --overlap: compare an all-reduce with the rate of its slowest
 * stage, and measure how much of it a computation hides.
 *
 *     overlap_measure.c  stage rates; plans fed layer by layer during computation
 *     overlap_bounds.c   bounds, and lines of the table
 *
 * The rate of a stage, measured alone, is in bytes of the vector per second: the bytes
 * of an operation over the stage's time for its share of them. A link that carries B
 * bytes per second in each direction has the rate B / r, where r is the number of
 * encoded bytes sent per byte of the vector.
 */
#ifndef PERF_COLL_OVERLAP_H
#define PERF_COLL_OVERLAP_H

#include "perf/coll/measure.h"
#include "perf/coll/operation.h"

enum perf_stage {
    PERF_STAGE_ENCODE,
    PERF_STAGE_LINK,
    PERF_STAGE_SUM,
    PERF_STAGE_DECODE,
    PERF_STAGES
};

/* Bytes that the stages of a rank process in one operation. */
struct perf_overlap_work {
    double vector; /* of the whole vector */
    double of[PERF_STAGES]; /* unencoded; link: encoded, with headers */
};

/* Bytes per second of each stage alone; ignored for stages without work. */
struct perf_overlap_alone {
    double Bps[PERF_STAGES];
    double link_cpu_s; /* processor time of a rank per byte sent */
};

/**
 * perf_overlap_work - return the bytes per stage for a schedule.
 *
 * flat     each rank sums the whole vector; else each finishes its part
 * coded    elements are encoded and decoded
 * wire     bytes that a rank sends in one operation
 */
struct perf_overlap_work perf_overlap_work(double vector, int ranks, bool flat,
                                           bool coded, double wire);

/** perf_overlap_bounds - compute the rates, the bounds, and the fraction of the bound
 * that an operation of `us` reaches. */
void perf_overlap_bounds(const struct perf_overlap_work *work,
                         const struct perf_overlap_alone *alone, double us,
                         struct perf_overlap *out);

/** perf_overlap_hidden - return the fraction of `comm` seconds that is hidden: `both`
 * compared with `compute` alone. At most 1; below 0 if both together take longer than
 * one after the other. */
double perf_overlap_hidden(double comm, double compute, double both);

const char *perf_overlap_stage_name(enum perf_stage stage);

/** perf_overlap_print - print the lines of the table. */
void perf_overlap_print(const struct perf_overlap *o);

/** perf_overlap_measure - measure all of this with the plan of op, which takes
 * out->us.p50. Collective. */
trib_status_t perf_overlap_measure(struct perf_operation *op, struct perf_result *out);

#endif
