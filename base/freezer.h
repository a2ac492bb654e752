/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is a process of this host frozen by its control group (docker pause, systemctl
 * freeze)?
 *
 * /proc/PID/stat does not tell: a frozen process shows as one that sleeps.
 */
#ifndef BASE_FREEZER_H
#define BASE_FREEZER_H

#include <stdbool.h>

/**
 * trib_frozen - has the freezer of either version of control groups stopped it, or is
 * about to?
 *
 * pid      as /proc shows it
 * returns  false also where /sys/fs/cgroup does not show its group, as in a container
 *          that has a cgroup namespace of its own. Takes some 20 microseconds
 */
bool trib_frozen(int pid);

#endif
