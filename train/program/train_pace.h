/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many steps all ranks take in a second, also where each goes on in its own time:
 * counted from when the last rank begins to when the first one ends. With a fixed
 * number of steps a slow rank would else work on alone.
 */
#ifndef TRAIN_PROGRAM_TRAIN_PACE_H
#define TRAIN_PROGRAM_TRAIN_PACE_H

#include <stddef.h>

#include <tributary.h>

struct train_pace {
    double *at; /* [n]: when the first step began, and each one ended; NULL: not kept */
    size_t n, room;
};

/** train_pace_open - make room for so many steps; -1: no memory. */
int train_pace_open(struct train_pace *pace, size_t steps);

/** train_pace_mark - a step ends now, or the first one begins; in seconds of a clock
 * that all ranks read. Does nothing where nothing is kept. */
void train_pace_mark(struct train_pace *pace, double now);

/** train_pace_within - steps of this rank from one moment to another, with a share of
 * those that begin or end outside. */
double train_pace_within(const struct train_pace *pace, double from, double to);

/**
 * train_pace_rate - collective: steps a second of all ranks together.
 *
 * errors   those of an all-reduce; the sentence is the communicator's
 */
trib_status_t train_pace_rate(const struct train_pace *pace, trib_comm_t *comm,
                              double *rate_out);

void train_pace_close(struct train_pace *pace);

#endif
