/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Common to all modes of training: start and end of ranks, agreement, time.
 */
#ifndef TRAIN_PROGRAM_TRAIN_COMM_H
#define TRAIN_PROGRAM_TRAIN_COMM_H

#include <stddef.h>
#include <stdint.h>

#include <tributary.h>

#include "base/error.h"
#include "train/program/train_run.h"

/**
 * train_init - become a rank; -1 after an error message.
 *
 * rank, root  as in train_rank
 */
int train_init(const struct train_args *args, int rank, const char *root,
               trib_comm_t **comm_out);

/** train_leave - free the communicator; -1 after an error message. */
int train_leave(trib_comm_t *comm);

/**
 * train_all_good - agree whether all ranks can continue (0) or none (-1).
 *
 * err      the local error, if any; printed by the first rank that has it
 */
int train_all_good(trib_comm_t *comm, const struct trib_error *err);

/**
 * train_all_seeds - run a training for each seed in turn, then leave the communicator.
 *
 * train    non-zero: failed; result is the caller's on ranks other than 0
 * report   called on rank 0 after the last seed; non-zero: failed
 * returns  the exit code
 */
int train_all_seeds(const struct train_job *job, trib_comm_t *comm,
                    int (*train)(const struct train_job *job, trib_comm_t *comm,
                                 uint64_t seed, struct train_result *result),
                    int (*report)(const struct train_job *job));

/* Figures of a training, means over its ranks. */
struct train_counts {
    double wire, input, input_dense; /* bytes sent, and by codecs; before the codecs */
    double seconds, library; /* of all steps, and in the library */
    double rounds, round_bytes; /* sums, and their dense bytes */
    double steps;
};

/** train_result_fill - derive the result of a training of n parameters on `ranks`
 * ranks. */
void train_result_fill(struct train_result *result, const struct train_counts *counts,
                       size_t n, double ranks);

/** train_result_clear - reset a result; figures that some trainings lack become NAN. */
void train_result_clear(struct train_result *result);

/** train_hash - return the FNV-1a hash. */
uint64_t train_hash(const void *data, size_t bytes);

/** train_seconds - return the monotonic time in seconds. */
double train_seconds(void);

/** train_sleep - sleep for `ms` milliseconds; at most 0: return at once. */
void train_sleep(double ms);

/** train_slowness - return the factor by which --straggle and --slow-rank lengthen a
 * step; drawn from seed, rank and step. */
double train_slowness(const struct train_args *args, uint64_t seed, int rank,
                      size_t step);

#endif
