/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A loss that differs per rank, 0.5 |x - target|^2. Its mean has the minimum at the
 * mean of all targets, so the result of a strategy is known in advance.
 */
#ifndef TESTS_TRAIN_QUADRATIC_H
#define TESTS_TRAIN_QUADRATIC_H

#include <tributary/train.h>

#include "tests/harness/ranks.h"

enum { QUADRATIC_COUNT = 1003, QUADRATIC_PARTS = 3 };

struct quadratic {
    struct ranks_self *self;
    trib_trainer_desc_t desc; /* for the test to complete before quadratic_open */
    trib_trainer_t *trainer;
    trib_part_t parts[QUADRATIC_PARTS];
    float x[QUADRATIC_COUNT]; /* desc.params */
};

/** quadratic_init - a description with `strategy`, plain SGD and a constant rate
 * 0.1. */
void quadratic_init(struct quadratic *q, struct ranks_self *self, const char *strategy);

/** quadratic_cut - give the description three parts, the last one without a codec. The
 * others are too short for one that they are not given. */
void quadratic_cut(struct quadratic *q);

void quadratic_open(struct quadratic *q);
void quadratic_close(struct quadratic *q);

/** quadratic_target - of element i on one rank. */
float quadratic_target(int rank, size_t i);

/** quadratic_steps - takes steps; marks the gradient from its end where the feed is not
 * WHOLE. */
void quadratic_steps(struct quadratic *q, int steps);

/** quadratic_finish - calls trib_trainer_settle; dies unless all ranks have the same
 * bits. */
void quadratic_finish(struct quadratic *q);

/**
 * quadratic_train - run an even number of steps and finish. Ranks of agp finish after
 * every two steps: otherwise one rank could run all of these short steps before the
 * next one starts.
 */
void quadratic_train(struct quadratic *q, int steps);

/** quadratic_distance - the largest |x - optimum| of an element. */
double quadratic_distance(const struct quadratic *q);

#endif
