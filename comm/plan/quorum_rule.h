/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Quorum rules: the text, and the plans that may have one. The partial sums are in
 * pipeline/payload/partial.h.
 *
 *     all                     every rank is counted
 *     PART,deadline=TIME      PART of the ranks, above 0, at most 1; TIME in us, ms or
 *                             s
 */
#ifndef COMM_PLAN_QUORUM_RULE_H
#define COMM_PLAN_QUORUM_RULE_H

#include "comm/core/communicator.h"

struct trib_quorum_rule {
    double part; /* fraction of the ranks; 0: all */
    uint64_t deadline_ns;
};

/**
 * trib_quorum_rule_parse - parse the text of a quorum.
 *
 * errors   TRIB_ERR_INVALID with a message in err
 */
trib_status_t trib_quorum_rule_parse(const char *text, struct trib_error *err,
                                     struct trib_quorum_rule *out);

/** trib_quorum_rule_need - return the ranks that the rule requires: ceil(part *
 * ranks). */
uint32_t trib_quorum_rule_need(const struct trib_quorum_rule *rule, int ranks);

/**
 * trib_plan_quorum - decide the plan's quorum once its codec exists.
 *
 * Sets run.desc.quorum of a plan on an agg_comm. A quorum in the description is
 * mandatory; the configured one applies to plans that support a quorum.
 * errors   TRIB_ERR_INVALID, TRIB_ERR_UNSUPPORTED with a message
 */
trib_status_t trib_plan_quorum(struct trib_plan *plan, const trib_desc_t *desc);

/** trib_plan_quorum_feedback - check that the feedback keeps a residual for late
 * data. */
trib_status_t trib_plan_quorum_feedback(struct trib_plan *plan);

#endif
