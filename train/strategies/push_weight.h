/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Common parts of the push-sum strategies. Each rank has a vector x and a weight, whose
 * sums over all ranks are invariant. Its parameters are x / weight.
 */
#ifndef TRAIN_STRATEGIES_PUSH_WEIGHT_H
#define TRAIN_STRATEGIES_PUSH_WEIGHT_H

#include "train/trainer/trainer.h"

/* First member of such a strategy's state. */
struct trib_push {
    float *x; /* [count] */
    double weight;
};

/** trib_push_unbias - write the parameters x / weight to z [count]. */
void trib_push_unbias(const struct trib_trainer *t, const struct trib_push *push,
                      float *z);

/** trib_push_fields, trib_push_model - operations of a strategy (strategy.h). */
int trib_push_fields(struct trib_trainer *t,
                     struct trib_train_field out[TRIB_TRAIN_FIELDS]);
void trib_push_model(struct trib_trainer *t, float *out);

/** trib_push_moved - collective: scale x and weight so that the weights of the old
 * ranks add up to their number; x / weight is unchanged. A newcomer has weight 1. */
trib_status_t trib_push_moved(struct trib_trainer *t, const struct trib_train_move *m);

#endif
