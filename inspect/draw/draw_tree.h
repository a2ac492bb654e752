/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Draws the tree of switches, hosts, packages, NUMA nodes, caches, ranks and network
 * devices as text or for Graphviz.
 */
#ifndef INSPECT_DRAW_DRAW_TREE_H
#define INSPECT_DRAW_DRAW_TREE_H

#include <tributary/topology.h>

#include "topo/groups.h"
#include "topo/layout.h"
#include "topo/racks/racks.h"

/* Each pointer may be NULL. */
struct trib_drawing {
    const struct trib_layout *layout; /* the parts of one host */
    const struct trib_racks *racks;
    const struct trib_rank_place *places; /* of ranks 0 to n_places - 1 */
    int n_places;
};

/**
 * trib_draw_text - draw the tree as lines of text.
 *
 * A host without ranks, other than the layout's, shares a line with the others of its
 * rack.
 * returns  TRIB_OK, or TRIB_ERR_NO_MEMORY before the first line
 */
trib_status_t trib_draw_text(const struct trib_drawing *drawing, trib_line_fn fn,
                             void *arg);

/** trib_draw_dot - write the tree as a graph for Graphviz. */
trib_status_t trib_draw_dot(const struct trib_drawing *drawing, trib_line_fn fn,
                            void *arg);

#endif
