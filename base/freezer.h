/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Detect local processes frozen by their cgroup (docker pause, systemctl freeze).
 *
 * /proc/PID/stat shows a frozen process as sleeping.
 */
#ifndef BASE_FREEZER_H
#define BASE_FREEZER_H

#include <stdbool.h>

/**
 * trib_frozen - return true if a cgroup freezer, v1 or v2, has frozen the process or is
 * freezing it.
 *
 * pid      as shown by /proc
 * returns  also false if /sys/fs/cgroup does not show its group, as in a container with
 *          its own cgroup namespace. Takes about 20 us
 */
bool trib_frozen(int pid);

#endif
