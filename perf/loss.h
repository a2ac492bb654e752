/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bounds on the error that a lossy codec may cause.
 *
 * They follow from what trib_codec_describe says of a codec:
 *
 *     rounded    each element lies within the roundings that it may have seen
 *     selected   no element exceeds the sum of the magnitudes; the whole error is below
 *                what the selections leave out and their values are off; and each rank
 *                has its share of elements that nobody else has sent. With values of
 *                random error the error as a whole alone is looked at
 *     random     the whole error is below what the variance bound allows; and it has
 *                nothing in common with any rank's input, as it would if that were
 *                missing or there twice
 *     bounded    no element is off by more than the bound, and a rounding of its dtype
 *     projected  what comes out is a projection of the sum: the whole error is no
 *                larger
 */
#ifndef PERF_LOSS_H
#define PERF_LOSS_H

#include <stdbool.h>
#include <stddef.h>

enum perf_loss_kind {
    PERF_LOSS_NONE,
    PERF_LOSS_ROUNDED, /* f16, natural:round=nearest, blocks */
    PERF_LOSS_SELECTED, /* sparse codecs */
    PERF_LOSS_RANDOM, /* unbiased codecs */
    PERF_LOSS_BIASED, /* as random, but no rank is looked for */
    PERF_LOSS_PROJECTED, /* powersgd, gradiveq: the whole error is no larger than what
                          * was put in */
    PERF_LOSS_BUDGET, /* codec auto: `variance` is what the caller allows */
    PERF_LOSS_BOUNDED, /* bound */
    PERF_LOSS_VOTE, /* signsgd: which sign most ranks have comes out, exactly */
    PERF_LOSS_UNKNOWN, /* nothing is known but that elements are finite */
};

struct perf_loss {
    enum perf_loss_kind kind;
    bool feedback; /* only the first operation is as described here */
    double rounding; /* of the values that are sent, relative; 0: sent as f32 */
    double ratio; /* selected: of the elements; 0: k says how many */
    double k; /* 0 too: nothing is known of how many */
    double variance; /* w of E|C(x) - x|^2 <= w |x|^2 of random values; 0: they are
                      * not */
    double absolute; /* bounded: of an element of the result */
};

/* No element of an input that is no product's is larger. */
#define PERF_INPUT_MOST 4.0

/** perf_loss_of - of a codec text that trib_codec_check accepts. */
struct perf_loss perf_loss_of(const char *codec);

/** perf_loss_feed - the same with a feedback text that trib_feedback_check accepts. */
void perf_loss_feed(struct perf_loss *loss, const char *feedback);

/* A vector on its way through codecs. Values stay within a rounding of their dtype. */
struct perf_passage {
    const struct perf_loss *loss;
    int ranks;
    double rounding; /* of the dtype, relative */
};

/* One rank's part in the result, over all elements seen so far. */
struct perf_part {
    double n; /* elements */
    double x2; /* sum of squares of what it put in, as scaled in the result */
    double ex; /* sum of error times input; its terms: */
    double ex_squares; /* sum of their squares */
    double ex_most; /* the greatest magnitude */
    double alone; /* elements of the result that are this rank's alone */
};

void perf_part_add(const struct perf_passage *p, struct perf_part *part, double x,
                   double got, double error);

/** perf_element_wrong - `want` is right, a sum of numbers of that magnitude in all. */
bool perf_element_wrong(const struct perf_passage *p, double got, double want,
                        double magnitude);

/** perf_element_most - how far an element may be from what is right; INFINITY: any
 * number. */
double perf_element_most(const struct perf_passage *p, double magnitude);

struct perf_whole {
    double elements;
    double nonzero; /* of the result */
    double square; /* sum of the squares of what is right */
    double magnitude2; /* sum of squared magnitudes */
    const struct perf_part *parts; /* of each rank */
};

/** perf_error_limit - of the sum of squared errors; INFINITY: none is known. */
double perf_error_limit(const struct perf_passage *p, const struct perf_whole *whole);

/** perf_parts_lost - ranks whose part is plainly not in the result as it must be. */
int perf_parts_lost(const struct perf_passage *p, const struct perf_whole *whole);

#endif
