/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Codec auto: its text, its candidates, and the choice among them from measurements.
 * There is no communication here. All ranks hold the same figures, so all make the same
 * choice.
 *
 *     auto:max_nmse=E       any candidate whose error on a sample stays below E: the
 *                           squared error of the sum over the squared sum
 *     auto:of=A|B|…         these codecs, whatever their error, and none
 *
 * Candidates of different codecs come first, followed by variants: the codec of another
 * candidate with a different algorithm or shorter chunks.
 *
 * Times are medians of up to 32 starts, and a codec must gain more than their scatter.
 * The shortest start does not decide: where ranks share cores, one lucky start kept a
 * codec (32 KiB, 4 ranks: 46 µs instead of 17).
 */
#ifndef COMM_PLAN_AUTO_CHOICE_H
#define COMM_PLAN_AUTO_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

#include <tributary/status.h>

struct trib_error;

enum { TRIB_AUTO_CANDIDATES = 20, TRIB_AUTO_CODECS = 14, TRIB_AUTO_TEXT = 160 };

struct trib_auto_candidate {
    char text[TRIB_AUTO_TEXT]; /* codec text */
    bool holds; /* keeps a residual for the next start */
    int like; /* candidate whose codec this varies; its own index: not a variant */
    double merges; /* times a sum is re-encoded, for codecs that re-encode sums */
    const char *algorithm; /* NULL: the cheapest one by the model */
    size_t chunk; /* bytes; 0: the plan's chunk size */
    /* From the sample of the last agreement; equal on all ranks. */
    double nmse; /* expected error of the sum; negative: unknown */
    double bytes; /* encoded bytes per element, mean of contribution and result */
    double work_ns; /* CPU time per element: one encode and two decodes */
    double took_us; /* measured time of a start; 0: never ran */
    double noise_us; /* uncertainty of took_us */
};

struct trib_auto_choice {
    double max_nmse; /* negative: the caller named the candidates */
    int n; /* candidates; number 0 is uncompressed */
    int codecs; /* candidates with different codecs, which come first */
    struct trib_auto_candidate of[TRIB_AUTO_CANDIDATES];
    int now; /* the running candidate */
    double adopted_us; /* its time when chosen; 0: not measured then */
    int drifts; /* consecutive agreements that found a different time */
    bool settled; /* no candidate promises more than the running one */
    int changes; /* number of drifts that discarded all measurements */
    bool confirmed; /* dense sums were measured again before a codec was kept */
    double optimism; /* ratio of measured to expected time of starts, at least 1 */
    /* Facts about the plan. */
    double count, element; /* elements, and bytes per element */
    double ranks;
    double fixed; /* fraction of the time of dense sums that does not depend on bytes */
    double crowd; /* ranks per core, at least 1 */
};

/** trib_auto_wanted - return true if the text selects codec auto. */
bool trib_auto_wanted(const char *text);

/**
 * trib_auto_parse - parse the budget and the candidates.
 *
 * errors   TRIB_ERR_CODEC with a message
 */
trib_status_t trib_auto_parse(const char *text, struct trib_error *err,
                              struct trib_auto_choice *out);

/** trib_auto_feedback - refuse any feedback that corrects anything:
 * TRIB_ERR_UNSUPPORTED with a message. */
trib_status_t trib_auto_feedback(const char *feedback, struct trib_error *err);

/** trib_auto_allowed - return true if the candidate may run: its error is known and
 * within the budget, or the caller named it. */
bool trib_auto_allowed(const struct trib_auto_choice *choice, int i);

/**
 * trib_auto_expect_us - return the time of a start with candidate i: measured, or
 * estimated from the time of dense sums and from the candidate's bytes and CPU time.
 *
 * link     network rate relative to today's; 1: unchanged. Other values ignore
 *          measurements
 * returns  0 if nothing is known yet
 */
double trib_auto_expect_us(const struct trib_auto_choice *choice, int i, double link);

/**
 * trib_auto_next - return the candidate to run from now on.
 *
 * Dense sums run first. Then each candidate expected to take 10 % less than the best
 * measured time is tried. In the end the best measured candidate stays, unless another
 * takes 5 % less. A candidate other than dense sums must beat them by 5 % beyond noise.
 * If it takes more than 0.6 of their time, it must still do so after they have run a
 * second time. If starts take longer than estimated, the estimates of candidates that
 * have not run are raised. If the time drifts by 25 % from its value at the choice,
 * twice in a row, all other measurements are discarded and dense sums are measured
 * again.
 */
int trib_auto_next(struct trib_auto_choice *choice);

/**
 * trib_auto_vary - add a variant of the running codec: with this algorithm, or with
 * chunks of `chunk` bytes. It is tried once the running candidate is the best of all
 * codecs.
 *
 * algorithm  static storage; NULL: the cheapest one by the model
 * returns  false if the variant already exists or the table is full
 */
bool trib_auto_vary(struct trib_auto_choice *choice, const char *algorithm,
                    size_t chunk);

/** trib_auto_holds - return true if some candidate keeps a residual. */
bool trib_auto_holds(const struct trib_auto_choice *choice);

/** trib_auto_name - write a candidate's codec and its variation; returns `name`. */
const char *trib_auto_name(const struct trib_auto_choice *choice, int i, char *name,
                           size_t bytes);

/** trib_auto_explain - write lines for trib_plan_explain, each with a newline. */
void trib_auto_explain(const struct trib_auto_choice *choice, char *text, size_t bytes);

#endif
