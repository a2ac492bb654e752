/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TRIB_CHECK: a rank looks at its own contribution before it sends it
 * (pipeline/payload/check.h).
 */
#ifndef COMM_CONTRIBUTION_CHECK_H
#define COMM_CONTRIBUTION_CHECK_H

#include "comm/communicator.h"

/**
 * trib_check_start - look at what a plan is started with, if it is not fed piecewise.
 *
 * send     as check_buffers has found it good; NULL: in place, in recv
 * errors   TRIB_ERR_INVALID: it is bad; the operation has ended on all ranks, with a
 *          sentence
 */
trib_status_t trib_check_start(struct trib_plan *plan, const void *send,
                               const void *recv);

/** trib_check_fed - the same of elements [first, first + count) of a plan that is
 * fed. */
trib_status_t trib_check_fed(struct trib_plan *plan, size_t first, size_t count);

#endif
