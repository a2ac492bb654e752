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
 * trib_plan_scale_make - create a plan of such a description, as trib_plan_make does.
 */
trib_status_t trib_plan_scale_make(struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *desc,
                                   struct trib_plan **plan_out);

/** trib_plan_scale_get - return the current factors of a plan; 1 without scales. */
void trib_plan_scale_get(const struct trib_plan *plan, double *prescale_out,
                         double *postscale_out);

#endif
