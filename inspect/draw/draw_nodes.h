/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The nodes of a drawing, independent of its output format.
 */
#ifndef INSPECT_DRAW_DRAW_NODES_H
#define INSPECT_DRAW_DRAW_NODES_H

#include "inspect/draw/draw_tree.h"

/* Deeper nodes are drawn at this depth; no real machine has any. */
#define TRIB_NODE_DEPTH_MAX 63

enum trib_node_kind {
    TRIB_NODE_SWITCH,
    TRIB_NODE_HOST,
    TRIB_NODE_PART, /* a part of a host: package, NUMA node, cache */
    TRIB_NODE_NIC,
};

struct trib_node {
    enum trib_node_kind kind;
    int depth;
    bool more; /* another sibling follows */
    char label[160];
};

/* Preorder: each node precedes its children, which precede its next sibling. */
struct trib_nodes {
    struct trib_node *node;
    int n;
    int room;
};

/** trib_nodes_make - create the nodes; free(out->node) even if it fails with
 * TRIB_ERR_NO_MEMORY. */
trib_status_t trib_nodes_make(const struct trib_drawing *drawing,
                              struct trib_nodes *out);

#endif
