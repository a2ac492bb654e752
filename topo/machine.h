/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This machine, as far as the library's choices need it: cores, caches, NUMA nodes.
 */
#ifndef TOPO_MACHINE_H
#define TOPO_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#include <tributary/info.h>
#include <tributary/status.h>

/* 0 or "" where something is not known, except for the counts of cores and CPUs. */
struct trib_machine {
    int packages;
    int numa_nodes;
    int cores;
    int cpus; /* hardware threads */
    int cores_allowed; /* number of cores on which this process may run: affinity,
                        * cpusets */
    int cpus_allowed;
    size_t l1d_bytes; /* caches: of one instance */
    size_t l2_bytes;
    size_t l3_bytes;
    int l3_count;
    uint64_t memory_bytes;
    char model[64];
    const char *source; /* origin of the facts: "hwloc" or "sysfs" */
};

/**
 * trib_machine_read - look at this machine: with hwloc where it is built in.
 *
 * thread   any; takes some milliseconds, so once per context
 */
void trib_machine_read(struct trib_machine *out);

/**
 * trib_machine_read_sysfs - the same from Linux's /sys and /proc alone; below 1 ms on
 * small machines.
 *
 * root     "", or a folder with a copy of /sys and /proc; affinity then allows all
 */
void trib_machine_read_sysfs(const char *root, struct trib_machine *out);

/**
 * trib_machine_read_xml - a machine from a file that hwloc's lstopo has written; all of
 * it is allowed. NULL: this machine.
 *
 * errors   TRIB_ERR_INVALID: no such file, or it describes no machine;
 *          TRIB_ERR_UNSUPPORTED without hwloc
 */
trib_status_t trib_machine_read_xml(const char *path, struct trib_machine *out);

/** trib_machine_list - one item a line, for trib-info. */
void trib_machine_list(const struct trib_machine *machine, trib_item_fn fn, void *arg);

#endif
