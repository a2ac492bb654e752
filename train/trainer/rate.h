/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Learning rates as texts: "0.1", "linear:rate=0.1,warmup=0.05,steps=4680".
 */
#ifndef TRAIN_TRAINER_RATE_H
#define TRAIN_TRAINER_RATE_H

#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;

struct trib_train_rate {
    int decay; /* row of the table: constant, linear, cosine */
    double rate; /* the maximum; already multiplied by the number of ranks if ranks=1 */
    double one_rank; /* the rate per rank; 0: the rate is not scaled by ranks */
    uint64_t warmup; /* steps until the maximum is reached */
    uint64_t steps; /* of the run; 0: unknown */
};

/**
 * trib_train_rate_parse - parse a learning rate.
 *
 * text     NULL: 0.01
 * errors   TRIB_ERR_INVALID with an error message in err
 */
trib_status_t trib_train_rate_parse(const char *text, int ranks, struct trib_error *err,
                                    struct trib_train_rate *rate_out);

/** trib_train_rate_move - rescale the rate for another number of ranks. */
void trib_train_rate_move(struct trib_train_rate *rate, int ranks);

/** trib_train_rate_at - return the rate of step `step`; steps count from 0. */
double trib_train_rate_at(const struct trib_train_rate *rate, uint64_t step);

/** trib_train_rate_print - describe the rate for people; return text. */
const char *trib_train_rate_print(const struct trib_train_rate *rate, char *text,
                                  size_t bytes);

#endif
