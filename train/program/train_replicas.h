/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks trained by replicas, wherever a kind says that they are: what --kind says, by
 * trib_replicator_run.
 */
#ifndef TRAIN_PROGRAM_TRAIN_REPLICAS_H
#define TRAIN_PROGRAM_TRAIN_REPLICAS_H

#include "train/program/train_run.h"

/** train_replicas_check - what of the command line does not fit --kind; -1: nothing, 2
 * after a sentence. */
int train_replicas_check(const struct train_job *job);

/**
 * train_replicas_rank - be a process of replicas, with each seed in turn.
 *
 * rank, root, told  as of train_rank, which has the same exit codes
 */
int train_replicas_rank(const struct train_job *job, int rank, const char *root,
                        int (*told)(const struct train_job *job));

#endif
