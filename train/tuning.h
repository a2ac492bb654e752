/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tuning: a strategy measures its first steps, which are dense and synchronous, and the
 * codecs from which it may choose; then it goes on with the width and codec of which it
 * estimates the fastest step.
 */
#ifndef TRAIN_TUNING_H
#define TRAIN_TUNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "train/estimate.h"

struct trib_trainer;
struct trib_train_sum;

enum { TRIB_TRAIN_TIMED = 16, TRIB_TRAIN_CODECS = 8 };

/* Seconds of one step. */
struct trib_train_timing {
    double compute, load; /* and processor time meanwhile */
    double sum, busy; /* dense; and processor time meanwhile */
    double start; /* the part of the sum in which the caller cannot go on */
    double update;
    double bytes; /* that the rank has sent */
};

/* What a checkpoint keeps of it. */
struct trib_train_choice {
    uint32_t made;
    uint32_t codec; /* number */
    uint32_t width;
};

struct trib_train_tuning {
    struct trib_train_timing timing[TRIB_TRAIN_TIMED];
    int timed;
    char *texts; /* of codecs, each with its end */
    const char *codecs[TRIB_TRAIN_CODECS];
    int n_codecs;
    int width; /* 0: 1 or 2 */
    float *sample; /* [count] this rank's gradient of the last timed step */
    trib_estimate_t row[1 + 2 * TRIB_TRAIN_CODECS];
    bool may[1 + 2 * TRIB_TRAIN_CODECS];
    int codec_of[1 + 2 * TRIB_TRAIN_CODECS]; /* -1: dense */
    int n_rows;
    int chosen; /* row */
    struct trib_train_choice choice;
};

/**
 * trib_train_tuning_create - collective.
 *
 * codecs   "int8|qsgd:bits=4"; each is tried, so that an error shows before the first
 *          step. NULL: dense
 * width    0: 1 or 2
 * owner    the caller: trib_train_tuning_free; NULL is allowed there
 */
trib_status_t trib_train_tuning_create(struct trib_trainer *t, const char *codecs,
                                       int width, struct trib_train_tuning **out);
void trib_train_tuning_free(struct trib_train_tuning *tuning);

/** trib_train_tuning_sum - a sum of all gradients by a codec of the tuning; -1: dense,
 * whatever codecs parts have. */
trib_status_t trib_train_tuning_sum(struct trib_trainer *t,
                                    const struct trib_train_tuning *tuning, int codec,
                                    struct trib_train_sum **out);

/** trib_train_tuning_begin, _computed, _summed, _updated - marks of a timed step, in
 * this order. _computed looks at the gradient. */
void trib_train_tuning_begin(struct trib_trainer *t, struct trib_train_tuning *tuning);
void trib_train_tuning_computed(struct trib_trainer *t,
                                struct trib_train_tuning *tuning,
                                const float *gradient);
void trib_train_tuning_summed(struct trib_trainer *t, struct trib_train_tuning *tuning);
void trib_train_tuning_updated(struct trib_train_tuning *tuning);

/** trib_train_tuning_due - true when all steps are timed, and nothing is chosen yet. */
bool trib_train_tuning_due(const struct trib_train_tuning *tuning);

/**
 * trib_train_tuning_choose - collective: measure links and codecs, and choose.
 *
 * scratch  [count] in reach of the peers
 */
trib_status_t trib_train_tuning_choose(struct trib_trainer *t,
                                       struct trib_train_tuning *tuning,
                                       float *scratch);

/** trib_train_tuning_print - the table, or what will be measured. */
void trib_train_tuning_print(const struct trib_train_tuning *tuning, char *text,
                             size_t bytes);

#endif
