/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compensation for codec loss.
 */
#ifndef COMM_PLAN_PLAN_FEEDBACK_H
#define COMM_PLAN_PLAN_FEEDBACK_H

#include <stddef.h>

#include <tributary/coll.h>

struct trib_plan;

/* A row of trib_plan_own_ops that is defined in a file of its own. */
trib_status_t trib_plan_own_sent(struct trib_plan *plan, const unsigned char **mask_out,
                                 size_t *sent_out);

/** trib_plan_feedback - set run.desc.feedback, the compensation for codec loss.
 *
 * errors   TRIB_ERR_INVALID, TRIB_ERR_UNSUPPORTED with a message */
trib_status_t trib_plan_feedback(struct trib_plan *plan, const trib_desc_t *desc);

/** trib_plan_idle - return TRIB_OK if the plan is not running; else TRIB_ERR_BUSY with
 * a message. */
trib_status_t trib_plan_idle(struct trib_plan *plan, const char *call);

#endif
