/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Learning rates as texts: "0.1", "linear:rate=0.1,warmup=0.05,steps=4680".
 */
#ifndef TRAIN_RATE_H
#define TRAIN_RATE_H

#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;

struct trib_train_rate {
    int decay; /* number of the row: constant, linear, cosine */
    double rate; /* the highest, already multiplied by the ranks where asked */
    double one_rank; /* what is multiplied; 0: nothing is */
    uint64_t warmup; /* steps until it is reached */
    uint64_t steps; /* of the run; 0: not known */
};

/**
 * trib_train_rate_parse - read a rate.
 *
 * text     NULL: 0.01
 * errors   TRIB_ERR_INVALID with a sentence in err
 */
trib_status_t trib_train_rate_parse(const char *text, int ranks, struct trib_error *err,
                                    struct trib_train_rate *rate_out);

/** trib_train_rate_move - the rate with another number of ranks. */
void trib_train_rate_move(struct trib_train_rate *rate, int ranks);

/** trib_train_rate_at - the rate of step `step`, from 0. */
double trib_train_rate_at(const struct trib_train_rate *rate, uint64_t step);

/** trib_train_rate_print - the rate in words; returns text. */
const char *trib_train_rate_print(const struct trib_train_rate *rate, char *text,
                                  size_t bytes);

#endif
