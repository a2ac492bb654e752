/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files that ask hwloc share; without hwloc there is nothing to open.
 */
#ifndef TOPO_HWLOC_OPEN_H
#define TOPO_HWLOC_OPEN_H

#include <stdbool.h>

#include "topo/machine.h"

struct hwloc_topology;

struct trib_hwloc_source {
    const char *synthetic; /* or NULL */
    const char *xml; /* a file; both NULL: this machine */
    bool devices; /* those of networks, too: takes longer */
};

/**
 * trib_hwloc_open - load a topology; hwloc_topology_destroy ends it.
 *
 * errors   TRIB_ERR_INVALID: text or file describe no machine; TRIB_ERR_UNSUPPORTED:
 *          built without hwloc; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_hwloc_open(const struct trib_hwloc_source *source,
                              struct hwloc_topology **out);

/** trib_hwloc_machine - what struct trib_machine has. */
void trib_hwloc_machine(struct hwloc_topology *topology, struct trib_machine *out);

#endif
