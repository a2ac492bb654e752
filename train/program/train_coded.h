/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linear tasks by gradient descent on all samples, whose gradients wait for no slow
 * rank: what --code says, by trib_coded_fit.
 */
#ifndef TRAIN_PROGRAM_TRAIN_CODED_H
#define TRAIN_PROGRAM_TRAIN_CODED_H

#include <stdatomic.h>

#include <tributary.h>

#include "train/program/train_run.h"

/* A rank that comes later reads here whom to join; all ranks share the memory. */
struct train_rendezvous {
    atomic_int open; /* 1: text is there, and it may come; 2: the run is over */
    char text[TRIB_ROOT_TEXT_MAX];
};

/** train_coded_built - false: this program has no codes. */
bool train_coded_built(void);

/** train_coded_check - what of the command line does not fit --code; -1: nothing, 2
 * after a sentence. */
int train_coded_check(const struct train_job *job);

/**
 * train_coded_rank - be a rank of a coded training, with each seed in turn.
 *
 * The rank that is 0 at the end has the results, and calls told.
 * rank, root, told  as of train_rank, which has the same exit codes
 */
int train_coded_rank(const struct train_job *job, int rank, const char *root,
                     int (*told)(const struct train_job *job));

#endif
