/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Helpers of the files that use hwloc; without hwloc, opening fails.
 */
#ifndef TOPO_HWLOC_OPEN_H
#define TOPO_HWLOC_OPEN_H

#include <stdbool.h>

#include "topo/machine.h"

struct hwloc_topology;

struct trib_hwloc_source {
    const char *xml; /* a file; NULL: this machine */
    bool devices; /* include network devices; takes longer */
};

/**
 * trib_hwloc_open - load a topology; free it with hwloc_topology_destroy.
 *
 * errors   TRIB_ERR_INVALID: the file does not describe a machine;
 *          TRIB_ERR_UNSUPPORTED: built without hwloc; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_hwloc_open(const struct trib_hwloc_source *source,
                              struct hwloc_topology **out);

/** trib_hwloc_machine - fill in struct trib_machine from a topology. */
void trib_hwloc_machine(struct hwloc_topology *topology, struct trib_machine *out);

#endif
