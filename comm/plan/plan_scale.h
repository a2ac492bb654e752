/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans with scaled contributions and results: prescale, postscale and weighted of
 * trib_desc_t.
 */
#ifndef COMM_PLAN_PLAN_SCALE_H
#define COMM_PLAN_PLAN_SCALE_H

#include "comm/core/communicator.h"

/** trib_plan_scale_wanted - return true if a description asks for scales. */
static inline bool trib_plan_scale_wanted(const trib_desc_t *d)
{
    return d->prescale != 0 || d->postscale != 0 || d->weighted;
}

/**
 * trib_plan_scale_take - check a description's scales and remove them, so that
 * *desc describes the plan to wrap. Does nothing without scales.
 *
 * errors   TRIB_ERR_INVALID, TRIB_ERR_UNSUPPORTED with a message
 */
trib_status_t trib_plan_scale_take(struct trib_comm *comm, trib_coll_t coll,
                                   trib_desc_t *desc);

/**
 * trib_plan_scale_wrap - add the scales of the caller's description to a plan.
 *
 * errors   TRIB_ERR_NO_MEMORY, or as trib_plan_make; the caller destroys the plan
 */
trib_status_t trib_plan_scale_wrap(struct trib_plan *plan, const trib_desc_t *desc);

/** trib_plan_scale_get - return the current factors of a plan; 1 without scales. */
void trib_plan_scale_get(const struct trib_plan *plan, double *prescale_out,
                         double *postscale_out);

#endif
