/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion callbacks within the library.
 */
#ifndef COMM_PLAN_PLAN_NOTIFY_H
#define COMM_PLAN_PLAN_NOTIFY_H

#include <tributary/status.h>

struct trib_plan;

/**
 * trib_plan_notify_then - call `then` once a start has completed, on any thread. It
 * must be short and must not call the plan.
 *
 * errors   as trib_plan_notify
 */
trib_status_t trib_plan_notify_then(struct trib_plan *plan, void (*then)(void *arg),
                                    void *arg);

#endif
