/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans of codec auto (auto_choice.h). Such a plan has an inner plan with the current
 * codec. At some starts the ranks sum their measurements.
 */
#ifndef COMM_AUTO_PLAN_AUTO_H
#define COMM_AUTO_PLAN_AUTO_H

#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/auto_choice.h"

/**
 * trib_plan_make_coded - create a plan with any codec: codec auto, or as trib_plan_make
 * and trib_plan_make_own do.
 *
 * own      run by the communicator's own engine
 * errors   as trib_plan_make; for codec auto TRIB_ERR_CODEC and TRIB_ERR_UNSUPPORTED
 *          with a message
 */
trib_status_t trib_plan_make_coded(struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *desc, bool own,
                                   struct trib_plan **plan_out);

extern const struct trib_plan_kind trib_plan_auto_kind;

/** trib_plan_auto_is - return true for a plan with an inner plan per codec. */
static inline bool trib_plan_auto_is(const struct trib_plan *plan)
{
    return plan->kind == &trib_plan_auto_kind;
}

/** trib_plan_auto_holds - return true if a candidate keeps a residual. */
bool trib_plan_auto_holds(const struct trib_plan *plan);

#endif
