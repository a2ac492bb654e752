/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A layout from hwloc.
 */
#ifndef TOPO_LAYOUT_HWLOC_H
#define TOPO_LAYOUT_HWLOC_H

#include "topo/layout.h"

/** trib_layout_read_hwloc - read a layout; statuses as trib_hwloc_open. Free `out` even
 * after a failure. */
trib_status_t trib_layout_read_hwloc(const char *xml, struct trib_layout *out);

#endif
