/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Common to all modes of training: start and end of ranks, agreement, time.
 */
#ifndef TRAIN_PROGRAM_TRAIN_COMM_H
#define TRAIN_PROGRAM_TRAIN_COMM_H

#include <stddef.h>
#include <stdint.h>

#include <tributary.h>

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
 * sentence local error message, printed by the first rank that has it; NULL: no error
 */
int train_all_good(trib_comm_t *comm, const char *sentence);

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
