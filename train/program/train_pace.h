/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steps per second of all ranks, even if each runs at its own pace. Counted from the
 * start of the last rank to the end of the first, because a slow rank would otherwise
 * finish its steps alone.
 */
#ifndef TRAIN_PROGRAM_TRAIN_PACE_H
#define TRAIN_PROGRAM_TRAIN_PACE_H

#include <stddef.h>

#include <tributary.h>

struct train_pace {
    /* [n] times of the start and of the end of each step; NULL: not recorded */
    double *at;
    size_t n, room;
};

/** train_pace_open - allocate memory for this number of steps; -1: no memory. */
int train_pace_open(struct train_pace *pace, size_t steps);

/** train_pace_mark - record the end of a step, or the start of the first, in seconds of
 * a clock shared by all ranks. Does nothing if not recording. */
void train_pace_mark(struct train_pace *pace, double now);

/**
 * train_pace_rate - collective: compute the steps per second of all ranks together.
 *
 * errors   as for an all-reduce; the communicator has the error message
 */
trib_status_t train_pace_rate(const struct train_pace *pace, trib_comm_t *comm,
                              double *rate_out);

void train_pace_close(struct train_pace *pace);

#endif
