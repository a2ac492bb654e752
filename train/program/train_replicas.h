/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mode --kind: tasks trained by replicas, with trib_replicator_run.
 */
#ifndef TRAIN_PROGRAM_TRAIN_REPLICAS_H
#define TRAIN_PROGRAM_TRAIN_REPLICAS_H

#include "train/program/train_run.h"

/** train_replicas_check - check the options of --kind; -1: valid, 2 after an error
 * message. */
int train_replicas_check(const struct train_job *job);

/**
 * train_replicas_rank - run a process of replicas, for each seed in turn.
 *
 * rank, root, report  as in train_rank, which has the same exit codes
 */
int train_replicas_rank(const struct train_job *job, int rank, const char *root,
                        int (*report)(const struct train_job *job));

#endif
