/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Number of processors that the processes of one host can use at the same time, from
 * affinity and the quota of their control groups.
 */
#ifndef TOPO_CPUS_H
#define TOPO_CPUS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/* The processors of one process; ranks send it to each other. */
struct trib_cpus {
    cpu_set_t set;
    uint64_t quota_group; /* equal for processes that share the quota */
    uint32_t quota_milli; /* average limit in thousandths of a CPU; 0: no quota */
    uint32_t unused;
};

enum { TRIB_CPUS_GROUPS = 64 };

/* The processors of several processes; zero-filled: of none. */
struct trib_cpus_sum {
    cpu_set_t set;
    int processes;
    bool unlimited; /* at least one process has no quota */
    int n_groups;
    uint64_t group[TRIB_CPUS_GROUPS];
    uint64_t milli; /* sum over all groups */
};

/** trib_cpus_self - read the processors of the calling thread; none if the kernel
 * reports nothing. */
void trib_cpus_self(struct trib_cpus *out);

/** trib_cpus_add - add one more process of the host. */
void trib_cpus_add(struct trib_cpus_sum *sum, const struct trib_cpus *one);

/** trib_cpus_count - return the hardware threads usable at once; a quota below 1 counts
 * as 1. */
int trib_cpus_count(const struct trib_cpus_sum *sum);

/** trib_cpus_quota - return how many CPUs each of `sharers` processes can use on
 * average by the quota that they share, at least 1; 0: no quota. */
uint32_t trib_cpus_quota(const struct trib_cpus *one, int sharers);

/** trib_cpus_usable - return the number of processors that this process can use; at
 * least 1. */
int trib_cpus_usable(void);

#endif
