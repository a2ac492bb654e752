/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bounds on the error that a lossy codec may cause.
 *
 * They follow from the codec's description by trib_codec_describe:
 *
 *     rounded    each element is within the roundings on its way
 *     selected   no element exceeds the sum of the magnitudes. The whole error is at
 *                most the elements not selected, plus the errors of the selected ones.
 *                Each rank has its share of elements that no other rank sent. If values
 *                have random errors, only the whole error is checked.
 *     random     the whole error is within the variance bound. It does not correlate
 *                with any rank's input, as it would if that input were missing or
 *                summed twice.
 *     bounded    no element is off by more than the bound plus a rounding of its dtype
 *     projected  the result is a projection of the sum: the whole error is at most the
 *                sum's magnitude
 */
#ifndef PERF_COLL_LOSS_H
#define PERF_COLL_LOSS_H

#include <stdbool.h>
#include <stddef.h>

enum perf_loss_kind {
    PERF_LOSS_NONE,
    PERF_LOSS_ROUNDED, /* f16, natural:round=nearest, blocks */
    PERF_LOSS_SELECTED, /* sparse codecs */
    PERF_LOSS_RANDOM, /* unbiased codecs */
    PERF_LOSS_BIASED, /* as random, without the check for lost ranks */
    PERF_LOSS_PROJECTED, /* powersgd, gradiveq: the error is at most the input */
    PERF_LOSS_BUDGET, /* codec auto: `variance` is the caller's limit */
    PERF_LOSS_BOUNDED, /* bound */
    PERF_LOSS_VOTE, /* signsgd: the exact majority sign */
    PERF_LOSS_UNKNOWN, /* no bound; elements must be finite */
};

struct perf_loss {
    enum perf_loss_kind kind;
    bool feedback; /* the bounds hold for the first operation only */
    double rounding; /* relative, of encoded values; 0: sent as f32 */
    double ratio; /* selected: fraction of the elements; 0: k applies */
    double k; /* selected: number of elements; 0: unknown, if ratio is 0 too */
    double variance; /* w of E|C(x) - x|^2 <= w |x|^2 for random values; 0: not
                      * random */
    double absolute; /* bounded: limit per element of the result */
};

/* Largest magnitude of an input, except of products. */
#define PERF_INPUT_MOST 4.0

/** perf_loss_of - return the bounds of a codec text that trib_codec_check accepts. */
struct perf_loss perf_loss_of(const char *codec);

/** perf_loss_feed - apply a feedback text that trib_feedback_check accepts. */
void perf_loss_feed(struct perf_loss *loss, const char *feedback);

/* The path of a vector through codecs. Values stay within a rounding of their dtype. */
struct perf_passage {
    const struct perf_loss *loss;
    int ranks;
    double rounding; /* relative, of the dtype */
};

/* Statistics of one rank's contribution to the result, over the elements so far. */
struct perf_part {
    double n; /* elements */
    double x2; /* sum of squares of its inputs, scaled as in the result */
    double ex; /* sum of the terms error * input */
    double ex_squares; /* sum of the squared terms */
    double ex_most; /* largest magnitude of a term */
    double alone; /* elements of the result that equal this rank's input */
};

void perf_part_add(const struct perf_passage *p, struct perf_part *part, double x,
                   double got, double error);

/** perf_element_wrong - return true if `got` is too far from `want`. magnitude: sum of
 * the magnitudes of the inputs. */
bool perf_element_wrong(const struct perf_passage *p, double got, double want,
                        double magnitude);

/** perf_element_most - return how far an element may be from the right value; INFINITY:
 * no limit. */
double perf_element_most(const struct perf_passage *p, double magnitude);

struct perf_whole {
    double elements;
    double nonzero; /* elements of the result */
    double square; /* sum of squares of the right result */
    double magnitude2; /* sum of squared magnitudes of the inputs */
    const struct perf_part *parts; /* one per rank */
};

/** perf_error_limit - return the limit of the sum of squared errors; INFINITY: none
 * known. */
double perf_error_limit(const struct perf_passage *p, const struct perf_whole *whole);

/** perf_parts_lost - return the number of ranks whose input is missing or wrong in the
 * result. */
int perf_parts_lost(const struct perf_passage *p, const struct perf_whole *whole);

#endif
