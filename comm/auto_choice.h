/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Codec auto: its text, its candidates, and the choice among them by what was measured.
 * Nothing here talks to other ranks. All ranks hold the same figures, so they choose
 * alike.
 *
 *     auto:max_nmse=E       any candidate whose error on a sample stays below E: the
 *                           squared error of the sum over the squared sum
 *     auto:of=A|B|…         the candidates are these codecs, whatever they lose, and
 *                           none
 *
 * Behind the candidates of different codecs come varied ones: the codec of another
 * candidate, by another algorithm or in shorter chunks.
 */
#ifndef COMM_AUTO_CHOICE_H
#define COMM_AUTO_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

#include <tributary/status.h>

struct trib_error;

enum { TRIB_AUTO_CANDIDATES = 20, TRIB_AUTO_CODECS = 14, TRIB_AUTO_TEXT = 160 };

struct trib_auto_candidate {
    char text[TRIB_AUTO_TEXT]; /* its codec */
    bool holds; /* keeps what it leaves out for the next start */
    int like; /* the candidate whose codec this one varies; its own number: none */
    double merges; /* how often a sum is encoded anew, of codecs that do so */
    const char *algorithm; /* NULL: the cheapest one by the model */
    size_t chunk; /* bytes; 0: as the plan's */
    /* From a sample of the last agreement; the same on all ranks. */
    double nmse; /* expected error of the sum; below 0: not known */
    double bytes; /* of an element in code words, mean of contribution and result */
    double work_ns; /* processor time of an element: one encode and two decodes */
    double took_us; /* a start as it was measured; 0: it has not run */
    double noise_us; /* by how much took_us may be off by chance */
};

struct trib_auto_choice {
    double max_nmse; /* below 0: the caller has named the candidates */
    int n; /* candidates; number 0 sends elements as they are */
    int codecs; /* those of different codecs, which come first */
    struct trib_auto_candidate of[TRIB_AUTO_CANDIDATES];
    int now; /* the candidate that runs */
    double adopted_us; /* its time when it was chosen; 0: not measured then */
    int drifts; /* agreements in a row that found another time */
    bool settled; /* nothing promises more than what runs */
    int changes; /* how often a drift made all unknown */
    bool confirmed; /* dense sums ran again before a codec was kept */
    double optimism; /* what starts took over what was expected of them, at least 1 */
    /* The facts of the plan. */
    double count, element; /* elements, and bytes of one */
    double ranks;
    double fixed; /* part of the time of dense sums that is not of their bytes */
    double crowd; /* ranks that share a core, at least 1 */
};

/** trib_auto_wanted - true if a codec's text asks for a choice. */
bool trib_auto_wanted(const char *text);

/**
 * trib_auto_parse - fill in the budget and the candidates.
 *
 * errors   TRIB_ERR_CODEC with a sentence: what, where, the cure
 */
trib_status_t trib_auto_parse(const char *text, struct trib_error *err,
                              struct trib_auto_choice *out);

/** trib_auto_feedback - refuse any feedback but those that correct nothing:
 * TRIB_ERR_UNSUPPORTED with a sentence. */
trib_status_t trib_auto_feedback(const char *feedback, struct trib_error *err);

/** trib_auto_allowed - true if the candidate may run: its error is known and small
 * enough, or the caller has named it. */
bool trib_auto_allowed(const struct trib_auto_choice *choice, int i);

/**
 * trib_auto_expect_us - the time of a start by candidate i: what was measured, or else
 * what follows from the time of dense sums, its bytes and its work.
 *
 * link     rate of the network over that of today; 1: as it is. What was measured is
 *          not used for another one
 * returns  0 where nothing is known yet
 */
double trib_auto_expect_us(const struct trib_auto_choice *choice, int i, double link);

/**
 * trib_auto_next - the candidate that is to run from now on.
 *
 * Dense sums run first. Then whichever is expected to take 10 % less than the best
 * that was measured is tried, and at last the best that was measured stays, unless
 * another one takes 5 % less. What is not dense sums stays only if it takes 5 % less
 * than they do beyond what is chance, and, where it takes more than 0.6 of their time,
 * if it still does so once they have run a second time. Where a start takes longer
 * than was expected of it, less is expected of those that have not run. A time that has
 * drifted by 25 % from that at the choice, twice in a row, makes all others unknown:
 * dense sums are measured anew.
 */
int trib_auto_next(struct trib_auto_choice *choice);

/**
 * trib_auto_vary - add a candidate: the codec that runs, by this algorithm or in chunks
 * of so many bytes. It is tried once what runs is the best of all codecs.
 *
 * algorithm  of static storage; NULL: the cheapest one by the model
 * returns    false if there is one already, or no room
 */
bool trib_auto_vary(struct trib_auto_choice *choice, const char *algorithm,
                    size_t chunk);

/** trib_auto_holds - true if a candidate keeps what it leaves out. */
bool trib_auto_holds(const struct trib_auto_choice *choice);

/** trib_auto_name - a candidate's codec, and what is varied of it; returns `name`. */
const char *trib_auto_name(const struct trib_auto_choice *choice, int i, char *name,
                           size_t bytes);

/** trib_auto_explain - lines for trib_plan_explain, each with its end. */
void trib_auto_explain(const struct trib_auto_choice *choice, char *text, size_t bytes);

#endif
