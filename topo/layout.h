/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of a machine: cores, caches, NUMA nodes, network devices, and which of them
 * are near to each other.
 */
#ifndef TOPO_LAYOUT_H
#define TOPO_LAYOUT_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/host.h"
#include "topo/machine.h"

struct trib_error;
struct trib_rank_place;

/* All numbers count from 0 over the whole machine; -1: not known. Where a core is near
 * to several NUMA nodes, as with memory of two kinds, it has the first. */
struct trib_layout_core {
    int cpu; /* the first hardware thread, as the kernel counts */
    int package;
    int numa;
    int l3;
};

struct trib_layout_numa {
    int package;
    uint64_t memory_bytes;
};

struct trib_layout_nic {
    char name[32];
    char netdev[16]; /* network device on the same card as an RDMA device */
    bool rdma;
    int package; /* -1: not known, or as near to all */
    int numa;
};

/* Cores and NUMA nodes are in the machine's order, devices in that of their names, 9
 * before 10. */
struct trib_layout {
    char host[TRIB_HOST_BYTES];
    struct trib_machine machine;
    int n_cores;
    int n_numa;
    int n_nics; /* RDMA devices; where there is none, network cards */
    struct trib_layout_core *cores;
    struct trib_layout_numa *numa;
    struct trib_layout_nic *nics;
};

/* The distance of a core from a device. */
enum trib_distance {
    TRIB_DISTANCE_NUMA, /* the same NUMA node */
    TRIB_DISTANCE_PACKAGE, /* another NUMA node of the same package */
    TRIB_DISTANCE_MACHINE, /* another package, or not known */
};

/**
 * trib_layout_read - read the layout with hwloc; without it, the counts of /sys, evenly
 * divided, and devices without a place.
 *
 * xml      a file that hwloc's lstopo has written; NULL: this machine
 * owner    trib_layout_free, unless it fails
 * errors   TRIB_ERR_INVALID: no such file, or it describes no machine;
 *          TRIB_ERR_UNSUPPORTED: a file, without hwloc; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_layout_read(const char *xml, struct trib_error *err,
                               struct trib_layout *out);

/** trib_layout_free - a zeroed layout is allowed. */
void trib_layout_free(struct trib_layout *layout);

/** trib_layout_distance - the distance from a core to a device. */
enum trib_distance trib_layout_distance(const struct trib_layout *layout, int core,
                                        int nic);

/**
 * trib_layout_nic - the nearest device of a core; -1: there is none.
 *
 * Of several that are as near, the cores for which they are get a block each: of 8
 * cores with 2 devices, the first 4 have the first.
 */
int trib_layout_nic(const struct trib_layout *layout, int core);

/** trib_layout_place - the place of a rank that is bound to a core. */
void trib_layout_place(const struct trib_layout *layout, int core,
                       struct trib_rank_place *out);

/**
 * trib_layout_bound - the place of a rank that is bound to some hardware threads.
 *
 * What differs among the cores whose first threads these are is not known; the device
 * is that of the first core, if all are of one package.
 */
void trib_layout_bound(const struct trib_layout *layout, const cpu_set_t *cpus,
                       struct trib_rank_place *out);

#endif
