/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that start a plan with error feedback step by step, and go on when others are
 * lost: the plan's state moves to the smaller communicator.
 *
 * Behind each start a dense sum of what all ranks have sent, by what they hold back
 * before and after, equals the result. Where the step in flight is done again, the
 * state is bit for bit what it was before it, also on a rank that had its result. Where
 * it is dropped, each element is what it was, what came with it, or sent.
 */
#ifndef TESTS_FAULT_PLANNED_H
#define TESTS_FAULT_PLANNED_H

#include "tests/harness/ranks.h"

enum { PLANNED_MARK_BITS = 8 };

struct planned_job {
    const char *codec, *feedback;
    bool drops; /* the step in flight; else it is done again */
    size_t count;
    bool (*may_stop)(struct ranks_self *self, trib_comm_t *comm);
    bool *recovers; /* is true while the rank shrinks and moves its plan */
};

/** planned_run - steps until all ranks may stop; slot->phase becomes 1 when all have
 * begun, and slot->count who is left and a hash of what was summed. */
int planned_run(struct ranks_self *self, const struct planned_job *job);

#endif
