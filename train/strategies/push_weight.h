/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of push-sum that its strategies share: a rank has a vector x and a weight,
 * whose sums over all ranks stay what they are, and its parameters are x / weight.
 */
#ifndef TRAIN_STRATEGIES_PUSH_WEIGHT_H
#define TRAIN_STRATEGIES_PUSH_WEIGHT_H

#include "train/trainer.h"

/** trib_push_unbias - the parameters x / weight, into z [count]. */
void trib_push_unbias(const struct trib_trainer *t, const float *x, double weight,
                      float *z);

/** trib_push_moved - collective: make the weights of the old ranks add up to their
 * number, each x / weight as it was. A newcomer has weight 1. */
trib_status_t trib_push_moved(struct trib_trainer *t, const struct trib_train_move *m,
                              float *x, double *weight);

#endif
