/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks of every form of training begin, agree, take their time and leave by these.
 */
#ifndef TRAIN_PROGRAM_TRAIN_COMM_H
#define TRAIN_PROGRAM_TRAIN_COMM_H

#include <stddef.h>
#include <stdint.h>

#include <tributary.h>

#include "train/program/train_run.h"

/**
 * train_init - become a rank; -1 after a sentence.
 *
 * rank, root  as of train_rank
 */
int train_init(const struct train_args *args, int rank, const char *root,
               trib_comm_t **comm_out);

/** train_leave - free the communicator; -1 after a sentence. */
int train_leave(trib_comm_t *comm);

/**
 * train_all_good - all ranks go on (0), or none (-1).
 *
 * sentence what is wrong here, said once by the first rank that has it; NULL: nothing
 */
int train_all_good(trib_comm_t *comm, const char *sentence);

/** train_result_clear - nothing is known; figures that not every training has are
 * NAN. */
void train_result_clear(struct train_result *result);

/** train_hash - FNV-1a. */
uint64_t train_hash(const void *data, size_t bytes);

/** train_seconds - monotonic, from any point on. */
double train_seconds(void);

/** train_sleep - for so many ms; nothing if it is 0 or less. */
void train_sleep(double ms);

/** train_slowness - how many times as long a step is to take by --straggle: drawn by
 * seed, rank and step. */
double train_slowness(const struct train_args *args, uint64_t seed, int rank,
                      size_t step);

#endif
