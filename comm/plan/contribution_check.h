/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TRIB_CHECK: each rank checks its contribution before sending
 * (pipeline/payload/check.h).
 */
#ifndef COMM_PLAN_CONTRIBUTION_CHECK_H
#define COMM_PLAN_CONTRIBUTION_CHECK_H

#include "comm/core/communicator.h"

/**
 * trib_check_start - check the whole input of a start, unless the plan is fed
 * piecewise.
 *
 * send     buffer accepted by check_buffers; NULL: in place, in recv
 * errors   TRIB_ERR_INVALID: the input is bad; the operation has failed on all ranks
 *          with a message
 */
trib_status_t trib_check_start(struct trib_plan *plan, const void *send,
                               const void *recv);

/** trib_check_fed - check elements [first, first + count) of a plan that is fed
 * piecewise. */
trib_status_t trib_check_fed(struct trib_plan *plan, size_t first, size_t count);

#endif
