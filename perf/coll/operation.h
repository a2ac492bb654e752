/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One collective of one size: buffers, plan and call.
 */
#ifndef PERF_COLL_OPERATION_H
#define PERF_COLL_OPERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <tributary.h>

#include "perf/coll/arguments.h"
#include "perf/coll/perf_oracle.h"

/* One collective of one size, with its buffers. */
struct perf_operation {
    trib_comm_t *comm;
    const struct perf_args *args;
    struct perf_oracle oracle;
    trib_desc_t desc;
    trib_plan_t *plan; /* NULL: blocking calls */
    trib_plan_t *send_plan; /* sends in sendrecv with plans; else NULL */
    void *input; /* points to send, or into recv */
    void *output; /* points to the result */
    void *pristine; /* a copy of the input; NULL: not kept */
    size_t bytes; /* size of the whole vector, as reported */
    void *blocks[2]; /* buffers that perf_operation_close frees */
    size_t block_bytes[2];
    trib_status_t (*run)(struct perf_operation *op);
    struct perf_pairs *pairs; /* NULL: the vector is dense */
};

/**
 * perf_operation_open - allocate buffers for `bytes` and create the plan.
 *
 * errors   as of trib_alloc, trib_register, trib_plan_create; nothing to close then
 */
trib_status_t perf_operation_open(trib_comm_t *comm, const struct perf_args *args,
                                  size_t bytes, struct perf_operation *op);
void perf_operation_close(struct perf_operation *op);

/**
 * perf_memory_fits - check that this host has the memory for the largest size.
 *
 * Counts all ranks started here; under a launcher, only this rank.
 * errors   false after a message on err; true if /proc does not say
 */
bool perf_memory_fits(const struct perf_args *args, FILE *err);

/** perf_operation_dense - expand a sparse result into op->output, for the check. */
trib_status_t perf_operation_dense(struct perf_operation *op);

/** perf_operation_fill, _zero - write this rank's input, or zeros. */
void perf_operation_fill(struct perf_operation *op);
void perf_operation_zero(struct perf_operation *op);

/** perf_operation_judge_later - with error feedback, stop checking error bounds:
 * results now contain residuals of earlier operations. */
void perf_operation_judge_later(struct perf_operation *op);

/** perf_operation_judge_absent - stop checking error bounds if the last result lacks a
 * rank because of a quorum. */
trib_status_t perf_operation_judge_absent(struct perf_operation *op);

/** perf_operation_keep - save a copy of the input. */
trib_status_t perf_operation_keep(struct perf_operation *op);

/** perf_operation_rewrite - restore the saved input, or write zeros if none was
 * saved. */
void perf_operation_rewrite(struct perf_operation *op);

/** perf_pairs_open - allocate a sparse vector. Call perf_pairs_close even if it
 * fails. */
trib_status_t perf_pairs_open(struct perf_operation *op);
void perf_pairs_close(struct perf_operation *op);

/** perf_pairs_take - collect the nonzero elements of the input. perf_pairs_given
 * returns their number. */
void perf_pairs_take(struct perf_operation *op);
size_t perf_pairs_given(const struct perf_operation *op);

/** perf_pairs_plan - create the plan for up to `most` pairs per rank. */
trib_status_t perf_pairs_plan(struct perf_operation *op, size_t most);

/** perf_operation_guards - return the number of overwritten guard bytes after the
 * buffers. */
size_t perf_operation_guards(const struct perf_operation *op);

/** perf_combine - reduce values[i] over all ranks, exactly, whatever the codec. */
trib_status_t perf_combine(trib_comm_t *comm, trib_op_t op, double *values, size_t n);

/** perf_say_wrong - print on stderr the errors found in this rank's own result. */
void perf_say_wrong(const struct perf_operation *op, const struct perf_verdict *verdict,
                    bool guards_damaged, bool input_changed);

/**
 * perf_say_different - print where the ranks' results differ. Collective.
 *
 * Each rank compares its result with rank 0's.
 */
trib_status_t perf_say_different(struct perf_operation *op);

#endif
