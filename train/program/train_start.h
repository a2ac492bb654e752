/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start a training: as ranks on this host, as simulated hosts, or as the rank that this
 * process is.
 */
#ifndef TRAIN_PROGRAM_TRAIN_START_H
#define TRAIN_PROGRAM_TRAIN_START_H

#include "train/program/hosts.h"
#include "train/program/train_run.h"

/** train_results_make - allocate results in memory shared with child processes; NULL:
 * no memory. It is never freed. */
struct train_result *train_results_make(int seeds);

/** train_rendezvous_make - allocate a rendezvous in the same way. */
struct train_rendezvous *train_rendezvous_make(void);

/**
 * train_start - run a training to its end.
 *
 * hosts    one per rank; NULL: all ranks are on this host
 * report   called on rank 0 after the training; may be NULL
 * returns  the exit code
 */
int train_start(const struct train_job *job, const struct hosts *hosts,
                int (*report)(const struct train_job *job));

#endif
