/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A layout from hwloc.
 */
#ifndef TOPO_LAYOUT_HWLOC_H
#define TOPO_LAYOUT_HWLOC_H

#include "topo/layout.h"

/** trib_layout_read_hwloc - read it; `out` is to be freed even after a failure.
 * Statuses of trib_hwloc_open. */
trib_status_t trib_layout_read_hwloc(const char *xml, struct trib_layout *out);

#endif
