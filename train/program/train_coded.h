/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mode --code: full-batch gradient descent for linear tasks by trib_coded_fit,
 * which does not wait for slow ranks.
 */
#ifndef TRAIN_PROGRAM_TRAIN_CODED_H
#define TRAIN_PROGRAM_TRAIN_CODED_H

#include <stdatomic.h>

#include <tributary.h>

#include "train/program/train_run.h"

/* Shared memory in which a joining rank reads the listener's address. */
struct train_rendezvous {
    atomic_int open; /* 1: text is valid, join; 2: the run is over */
    char text[TRIB_ROOT_TEXT_MAX];
};

/** train_coded_built - return false if this program was built without codes. */
bool train_coded_built(void);

/** train_coded_check - check the options of --code; -1: valid, 2 after an error
 * message. */
int train_coded_check(const struct train_job *job);

/**
 * train_coded_rank - run a rank of a coded training, for each seed in turn.
 *
 * The rank that is 0 at the end has the results and calls report.
 *
 * rank, root, report  as in train_rank, which has the same exit codes
 */
int train_coded_rank(const struct train_job *job, int rank, const char *root,
                     int (*report)(const struct train_job *job));

#endif
