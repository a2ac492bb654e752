/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The number of processors that the processes of one host can use at the same time, by
 * affinity and the quota of their control groups.
 */
#ifndef TOPO_CPUS_H
#define TOPO_CPUS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/* The processors of one process; travels between ranks. */
struct trib_cpus {
    cpu_set_t set;
    uint64_t quota_group; /* the same for processes that share the quota */
    uint32_t quota_milli; /* thousandths of a CPU, in the mean; 0: no quota */
    uint32_t unused;
};

enum { TRIB_CPUS_GROUPS = 64 };

/* The processors of several processes; zeroed: of none. */
struct trib_cpus_sum {
    cpu_set_t set;
    int processes;
    bool unlimited; /* one of them has no quota */
    int n_groups;
    uint64_t group[TRIB_CPUS_GROUPS];
    uint64_t milli; /* sum over all groups */
};

/** trib_cpus_self - read those of the calling thread; nothing is set if the kernel does
 * not say. */
void trib_cpus_self(struct trib_cpus *out);

/** trib_cpus_add - one more process of the host. */
void trib_cpus_add(struct trib_cpus_sum *sum, const struct trib_cpus *one);

/** trib_cpus_count - hardware threads that all can use at once; a quota below 1 counts
 * as 1. */
int trib_cpus_count(const struct trib_cpus_sum *sum);

/** trib_cpus_usable - the number that this process can use; at least 1. */
int trib_cpus_usable(void);

#endif
