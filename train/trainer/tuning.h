/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tuning: a strategy times its first steps, dense and synchronous, and each codec that
 * it may choose. It then continues with the codec and width whose step it estimates as
 * fastest.
 */
#ifndef TRAIN_TRAINER_TUNING_H
#define TRAIN_TRAINER_TUNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "train/trainer/estimate.h"

struct trib_trainer;
struct trib_train_sum;

enum { TRIB_TRAIN_TIMED = 16, TRIB_TRAIN_CODECS = 8 };

/* Seconds of one step. */
struct trib_train_timing {
    double compute, load; /* and its processor time */
    double sum, busy; /* of the dense sum; and its processor time */
    double start; /* the part of the sum that blocks the caller */
    double update;
    double bytes; /* sent by the rank */
};

/* The part that is saved in a checkpoint. */
struct trib_train_choice {
    uint32_t made;
    uint32_t codec; /* index */
    uint32_t width;
};

struct trib_train_tuning {
    struct trib_train_timing timing[TRIB_TRAIN_TIMED];
    int timed;
    char *texts; /* of codecs, each terminated by 0 */
    const char *codecs[TRIB_TRAIN_CODECS];
    int n_codecs;
    int width; /* 0: choose 1 or 2 */
    float *sample; /* [count] this rank's gradient of the last timed step */
    trib_estimate_t row[1 + 2 * TRIB_TRAIN_CODECS];
    bool may[1 + 2 * TRIB_TRAIN_CODECS];
    int codec_of[1 + 2 * TRIB_TRAIN_CODECS]; /* -1: dense */
    int n_rows;
    int chosen; /* index of the chosen row */
    struct trib_train_choice choice;
};

/**
 * trib_train_tuning_create - collective: create a tuning and try each codec.
 *
 * codecs   such as "int8|qsgd:bits=4"; trying them reports errors before the first
 *          step. NULL: dense
 * width    0: choose 1 or 2
 * owner    the caller: trib_train_tuning_free, which accepts NULL
 */
trib_status_t trib_train_tuning_create(struct trib_trainer *t, const char *codecs,
                                       int width, struct trib_train_tuning **out);
void trib_train_tuning_free(struct trib_train_tuning *tuning);

/** trib_train_tuning_sum - create a sum of the whole gradient with codec number
 * `codec`; -1: dense, even for parts with codecs. */
trib_status_t trib_train_tuning_sum(struct trib_trainer *t,
                                    const struct trib_train_tuning *tuning, int codec,
                                    struct trib_train_sum **out);

/** trib_train_tuning_begin, _computed, _summed, _updated - mark the phases of a timed
 * step, in this order. _computed copies the last gradient. */
void trib_train_tuning_begin(struct trib_trainer *t, struct trib_train_tuning *tuning);
void trib_train_tuning_computed(struct trib_trainer *t,
                                struct trib_train_tuning *tuning,
                                const float *gradient);
void trib_train_tuning_summed(struct trib_trainer *t, struct trib_train_tuning *tuning);
void trib_train_tuning_updated(struct trib_train_tuning *tuning);

/** trib_train_tuning_due - return true when all steps are timed and nothing is chosen
 * yet. */
bool trib_train_tuning_due(const struct trib_train_tuning *tuning);

/**
 * trib_train_tuning_choose - collective: measure links and codecs, and choose.
 *
 * scratch  [count] memory that peers can access
 */
trib_status_t trib_train_tuning_choose(struct trib_trainer *t,
                                       struct trib_train_tuning *tuning,
                                       float *scratch);

/** trib_train_tuning_print - print the table, or the measurement to come. */
void trib_train_tuning_print(const struct trib_train_tuning *tuning, char *text,
                             size_t bytes);

#endif
