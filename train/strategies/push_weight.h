/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of push-sum that its strategies share: a rank has a vector x and a weight,
 * whose sums over all ranks stay what they are, and its parameters are x / weight.
 */
#ifndef TRAIN_STRATEGIES_PUSH_WEIGHT_H
#define TRAIN_STRATEGIES_PUSH_WEIGHT_H

#include "train/trainer.h"

/* The first member of such a strategy. */
struct trib_push {
    float *x; /* [count] */
    double weight;
};

/** trib_push_unbias - the parameters x / weight, into z [count]. */
void trib_push_unbias(const struct trib_trainer *t, const struct trib_push *push,
                      float *z);

/** trib_push_fields, trib_push_model - as the trainer asks a strategy (strategy.h). */
int trib_push_fields(struct trib_trainer *t,
                     struct trib_train_field out[TRIB_TRAIN_FIELDS]);
void trib_push_model(struct trib_trainer *t, float *out);

/** trib_push_moved - collective: make the weights of the old ranks add up to their
 * number, each x / weight as it was. A newcomer has weight 1. */
trib_status_t trib_push_moved(struct trib_trainer *t, const struct trib_train_move *m);

#endif
