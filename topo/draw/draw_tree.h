/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tree of switches, hosts, packages, NUMA nodes, caches, ranks and network devices
 * as text and for Graphviz.
 */
#ifndef TOPO_DRAW_DRAW_TREE_H
#define TOPO_DRAW_DRAW_TREE_H

#include <tributary/topology.h>

#include "topo/groups.h"
#include "topo/layout.h"
#include "topo/racks/racks.h"

/* Each of them may be missing. */
struct trib_drawing {
    const struct trib_layout *layout; /* the inside of one host */
    const struct trib_racks *racks;
    const struct trib_rank_place *places; /* places of the ranks 0 to n_places - 1 */
    int n_places;
};

/**
 * trib_draw_text - lines of a tree with its branches.
 *
 * A host that is none of the ranks' and not that of the layout stands in a line with
 * the others of its rack.
 *
 * returns  TRIB_OK, or TRIB_ERR_NO_MEMORY before the first line
 */
trib_status_t trib_draw_text(const struct trib_drawing *drawing, trib_line_fn fn,
                             void *arg);

/** trib_draw_dot - the same as a graph, for dot and its like. */
trib_status_t trib_draw_dot(const struct trib_drawing *drawing, trib_line_fn fn,
                            void *arg);

#endif
