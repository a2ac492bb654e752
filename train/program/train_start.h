/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starts a training: as ranks of this host, as hosts of their own, or as the rank that
 * this process is.
 */
#ifndef TRAIN_PROGRAM_TRAIN_START_H
#define TRAIN_PROGRAM_TRAIN_START_H

#include "train/program/hosts.h"
#include "train/program/train_run.h"

/** train_results_make - results that processes share; NULL: no memory. They are never
 * given back. */
struct train_result *train_results_make(int seeds);

/** train_rendezvous_make - likewise. */
struct train_rendezvous *train_rendezvous_make(void);

/**
 * train_start - run a training to its end.
 *
 * hosts    each rank is on one of them; NULL: all are on this host
 * told     called on rank 0 when all is done; may be NULL
 * returns  the exit code
 */
int train_start(const struct train_job *job, const struct hosts *hosts,
                int (*told)(const struct train_job *job));

#endif
