/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The timing model of Pipe-SGD: the time of a step for a codec and a width. The public
 * entry point is trib_estimate_step of <tributary/train.h>.
 */
#ifndef TRAIN_TRAINER_ESTIMATE_H
#define TRAIN_TRAINER_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>

#include <tributary/train.h>

struct trib_error;

/** trib_train_estimate - as trib_estimate_step, with an error message in err. */
trib_status_t trib_train_estimate(trib_estimate_t *estimate, struct trib_error *err);

/* Measured times of dense sums of a few lengths: points of a curve. */
enum { TRIB_TRAIN_LINK_POINTS = 3 };

struct trib_train_link {
    double bytes[TRIB_TRAIN_LINK_POINTS]; /* sent per rank, ascending */
    double seconds[TRIB_TRAIN_LINK_POINTS];
};

/**
 * trib_train_overlap - return the time of two kinds of work that overlap in rounds.
 * trib_train_remainder - the inverse: return the time of one kind, given the time of
 * both together and of the other kind.
 */
double trib_train_overlap(double a, double b);
double trib_train_remainder(double both, double other);

/**
 * trib_train_link_at - return latency and rate of the segment of the curve that
 * contains `bytes`.
 *
 * hops     of the sum: its time is hops * latency + bytes / rate
 * latency_out  negative on a link that passes the first bytes faster, as shapers do
 */
void trib_train_link_at(const struct trib_train_link *link, double bytes, double hops,
                        double *latency_out, double *rate_out);

/**
 * trib_train_estimate_best - return the row to run by.
 *
 * may      [n] whether a row may be chosen; at least one must be true
 * returns  the fastest row. An earlier row that is less than 1 % slower wins, so a
 *          stronger codec or a delayed gradient is chosen only for a real gain.
 */
size_t trib_train_estimate_best(const trib_estimate_t *rows, const bool *may, size_t n);

#endif
