/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of algorithms.
 */
#ifndef COMM_PLAN_PLAN_SCHEDULE_H
#define COMM_PLAN_PLAN_SCHEDULE_H

#include <tributary/status.h>

struct trib_error;

/** trib_settings_algorithm - return TRIB_ERR_INVALID, suggesting the nearest name, if
 * no algorithm has this name. */
trib_status_t trib_settings_algorithm(const char *name, struct trib_error *err);

#endif
