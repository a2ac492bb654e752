/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Properties of this machine that the library's choices depend on: cores, caches, NUMA
 * nodes.
 */
#ifndef TOPO_MACHINE_H
#define TOPO_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#include <tributary/info.h>
#include <tributary/status.h>

/* 0 or "" where unknown, except for the counts of cores and CPUs. */
struct trib_machine {
    int packages;
    int numa_nodes;
    int cores;
    int cpus; /* hardware threads */
    int cores_allowed; /* cores on which this process may run: affinity, cpusets */
    int cpus_allowed;
    size_t l1d_bytes; /* size of one cache, also below */
    size_t l2_bytes;
    size_t l3_bytes;
    int l3_count;
    uint64_t memory_bytes;
    char model[64];
    const char *source; /* "hwloc" or "sysfs" */
};

/**
 * trib_machine_read - read this machine, with hwloc if it is built in.
 *
 * thread   any; takes some milliseconds, so call once per context
 */
void trib_machine_read(struct trib_machine *out);

/**
 * trib_machine_read_sysfs - read this machine from Linux's /sys and /proc; below 1 ms
 * on small machines.
 *
 * root     "", or a folder with a copy of /sys and /proc; affinity then allows all
 */
void trib_machine_read_sysfs(const char *root, struct trib_machine *out);

/** trib_machine_list - call fn for one item per line of trib-info. */
void trib_machine_list(const struct trib_machine *machine, trib_item_fn fn, void *arg);

#endif
