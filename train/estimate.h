/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The timing model of Pipe-SGD: what a step takes by a codec and a width. The public
 * part is trib_estimate_step of <tributary/train.h>.
 */
#ifndef TRAIN_ESTIMATE_H
#define TRAIN_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>

#include <tributary/train.h>

struct trib_error;

/** trib_train_estimate - trib_estimate_step with a sentence in err. */
trib_status_t trib_train_estimate(trib_estimate_t *estimate, struct trib_error *err);

/* Dense sums of a few lengths, measured: points of a curve. */
enum { TRIB_TRAIN_LINK_POINTS = 3 };

struct trib_train_link {
    double bytes[TRIB_TRAIN_LINK_POINTS]; /* that a rank sends, ascending */
    double seconds[TRIB_TRAIN_LINK_POINTS];
};

/** trib_train_overlap, trib_train_remainder - time of two kinds of work that go on side
 * by side in rounds; and of one kind, given that of both and of the other. */
double trib_train_overlap(double a, double b);
double trib_train_remainder(double both, double other);

/**
 * trib_train_link_at - latency and rate of the piece of the curve that has `bytes`.
 *
 * hops     of the sum: its time is hops * latency + bytes / rate
 * latency_out below 0 where a link lets the first bytes pass faster, as shapers do
 */
void trib_train_link_at(const struct trib_train_link *link, double bytes, double hops,
                        double *latency_out, double *rate_out);

/**
 * trib_train_estimate_best - the row to run by.
 *
 * may      [n] whether a row may be chosen; at least one may
 * returns  the fastest; one that is less than a hundredth slower and stands before it
 *          goes first, so that a milder codec or no delay is given up for a gain alone
 */
size_t trib_train_estimate_best(const trib_estimate_t *rows, const bool *may, size_t n);

#endif
