/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that start a plan with error feedback step by step and continue when others are
 * lost: the state of the plan moves to the smaller communicator.
 *
 * After each start, a dense sum of all contributions, computed from the residuals
 * before and after, equals the result. If the step in flight is repeated, the state is
 * bit-identical to the state before it, even on a rank that had its result. If the step
 * is dropped, each element is its old value, its input, or the value sent.
 */
#ifndef TESTS_FAULT_PLANNED_H
#define TESTS_FAULT_PLANNED_H

#include "tests/harness/ranks.h"

enum { PLANNED_MARK_BITS = 8 };

struct planned_job {
    const char *codec, *feedback;
    bool drops; /* drop the step in flight; otherwise repeat it */
    size_t count;
    bool (*may_stop)(struct ranks_self *self, trib_comm_t *comm);
    bool *recovers; /* true while the rank shrinks and moves its plan */
};

/** planned_run - run steps until all ranks may stop; slot->phase becomes 1 when all
 * have begun, slot->count the remaining ranks and a hash of the sums. */
int planned_run(struct ranks_self *self, const struct planned_job *job);

#endif
