/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of plans within the library.
 */
#ifndef COMM_PLAN_PLAN_H
#define COMM_PLAN_PLAN_H

#include <tributary/coll.h>

struct trib_plan;

/**
 * trib_plan_release - return TRIB_OK once nothing accesses the plan.
 *
 * what, call  for the TRIB_ERR_BUSY message: "plan", "trib_plan_free"
 */
trib_status_t trib_plan_release(struct trib_plan *plan, const char *what,
                                const char *call);

/** trib_plan_run - start and wait, on the caller's thread. */
trib_status_t trib_plan_run(struct trib_plan *plan, const void *send, void *recv);

#endif
