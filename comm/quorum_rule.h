/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The quorum of a plan: its text, and for which plans there is one.
 * pipeline/payload/partial.h sums.
 *
 *     all                     every rank is counted
 *     PART,deadline=TIME      PART of the ranks, above 0, at most 1; TIME in us, ms or
 *                             s
 */
#ifndef COMM_QUORUM_RULE_H
#define COMM_QUORUM_RULE_H

#include "comm/communicator.h"

struct trib_quorum_rule {
    double part; /* of the ranks; 0: all */
    uint64_t deadline_ns;
};

/**
 * trib_quorum_rule_parse - from its text.
 *
 * errors   TRIB_ERR_INVALID with a sentence in err
 */
trib_status_t trib_quorum_rule_parse(const char *text, struct trib_error *err,
                                     struct trib_quorum_rule *out);

/** trib_quorum_rule_need - of so many ranks: ceil(part * ranks). */
uint32_t trib_quorum_rule_need(const struct trib_quorum_rule *wish, int ranks);

/**
 * trib_plan_quorum - once the codec of a plan is made: which quorum has it, if any?
 *
 * Sets run.desc.quorum of a channel's plan. What is asked for must be done; what is
 * configured is for plans of which it is defined.
 * errors   TRIB_ERR_INVALID, TRIB_ERR_UNSUPPORTED with a sentence
 */
trib_status_t trib_plan_quorum(struct trib_plan *plan, const trib_desc_t *desc);

/** trib_plan_quorum_feedback - then, once its feedback is known: is there a
 * residual? */
trib_status_t trib_plan_quorum_feedback(struct trib_plan *plan);

#endif
