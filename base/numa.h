/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Distance between the CPUs of a thread and a device, as the kernel states it in /sys.
 */
#ifndef BASE_NUMA_H
#define BASE_NUMA_H

#include <stdbool.h>
#include <stddef.h>

#define TRIB_NUMA_LOCAL 100 /* distance within a NUMA node */

/**
 * trib_numa_distance - return the distance from this thread's CPUs to a NUMA node.
 *
 * The kernel's table has 10 for the same node and usually 20 and more for others. The
 * result is the mean over the allowed CPUs, times ten. So it is equal for all nodes if
 * the thread is not bound.
 * root     "", or a folder with a copy of /sys; all its CPUs are then allowed
 * returns  0: unknown
 * thread   any; reads some small files
 */
int trib_numa_distance(const char *root, int node);

/** trib_numa_node - return the NUMA node of a device with this folder in /sys, such as
 * "/sys/class/infiniband/mlx5_0"; -1: unknown. */
int trib_numa_node(const char *root, const char *folder);

#endif
