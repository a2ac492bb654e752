/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks of a command: started here with -n, or one of a launcher's.
 */
#ifndef PERF_COLL_PERF_RANKS_H
#define PERF_COLL_PERF_RANKS_H

#include <tributary.h>

#include "perf/coll/arguments.h"

/* Measure on one rank. Return the exit code, after a message if it is not 0. */
typedef int (*perf_rank_fn)(const void *arg, trib_comm_t *comm);

/** perf_ranks_run - run fn on each of args->ranks new ranks, or in this process as a
 * rank of a launcher's job if args->ranks is 0. Return the exit code. */
int perf_ranks_run(const struct perf_args *args, perf_rank_fn fn, const void *arg);

#endif
