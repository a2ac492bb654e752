/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of a machine: cores, caches, NUMA nodes, network devices, and their
 * distances.
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

/* All numbers count from 0 over the whole machine; -1: unknown. A core near several
 * NUMA nodes, such as with two kinds of memory, has the first. */
struct trib_layout_core {
    int cpu; /* first hardware thread, in the kernel's numbering */
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
    int package; /* -1: unknown, or equally near to all */
    int numa;
};

/* Cores and NUMA nodes are in machine order, devices in name order, 9 before 10. */
struct trib_layout {
    char host[TRIB_HOST_BYTES];
    struct trib_machine machine;
    int n_cores;
    int n_numa;
    int n_nics; /* RDMA devices; network cards if there are none */
    struct trib_layout_core *cores;
    struct trib_layout_numa *numa;
    struct trib_layout_nic *nics;
};

/* The distance from a core to a device. */
enum trib_distance {
    TRIB_DISTANCE_NUMA, /* the same NUMA node */
    TRIB_DISTANCE_PACKAGE, /* another NUMA node of the same package */
    TRIB_DISTANCE_MACHINE, /* another package, or unknown */
};

/**
 * trib_layout_read - read the layout with hwloc.
 *
 * Without hwloc, the counts of /sys are divided evenly, and devices have no place.
 * xml      a file written by hwloc's lstopo; NULL: this machine
 * owner    caller; free with trib_layout_free, unless it fails
 * errors   TRIB_ERR_INVALID: no such file, or it does not describe a machine;
 *          TRIB_ERR_UNSUPPORTED: a file, without hwloc; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_layout_read(const char *xml, struct trib_error *err,
                               struct trib_layout *out);

/** trib_layout_free - free a layout; accepts a zero-filled layout. */
void trib_layout_free(struct trib_layout *layout);

/** trib_layout_distance - return the distance from a core to a device. */
enum trib_distance trib_layout_distance(const struct trib_layout *layout, int core,
                                        int nic);

/**
 * trib_layout_nic - return the nearest device of a core; -1: none.
 *
 * Cores that share several nearest devices are divided into blocks, one per device: of
 * 8 cores with 2 devices, the first 4 use the first.
 */
int trib_layout_nic(const struct trib_layout *layout, int core);

/** trib_layout_place - write the place of a rank bound to a core. */
void trib_layout_place(const struct trib_layout *layout, int core,
                       struct trib_rank_place *out);

/**
 * trib_layout_bound - write the place of a rank bound to a set of hardware threads.
 *
 * Considers the cores whose first thread is in the set. Properties that differ among
 * them are unknown; the device is that of the first core, if all are in one package.
 */
void trib_layout_bound(const struct trib_layout *layout, const cpu_set_t *cpus,
                       struct trib_rank_place *out);

#endif
