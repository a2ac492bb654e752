/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tree of services: each rack sends to one near to it, and these to others above,
 * until one has the sum of all.
 */
#ifndef TOPO_SERVICES_H
#define TOPO_SERVICES_H

#include "topo/racks.h"

struct trib_tree_ask {
    const struct trib_racks *racks;
    const char *const *services; /* the host of each; a host may have several */
    int n_services;
    int fan_in; /* nodes that send to one node, at most; from 2 */
};

/* A part that a service plays: it may sum a rack, and play others further up. */
struct trib_tree_node {
    int service;
    int parent; /* another node; -1: the root */
    int level; /* 0: hosts send to it; else one more than the highest of its children */
    int children; /* nodes that send to it */
    int hosts; /* that send to it: all of its racks */
};

/* Children stand before their parents; the root is the last. */
struct trib_tree {
    int n;
    struct trib_tree_node *nodes;
    int *of_rack; /* [racks->n_switches] where its hosts send; -1: it has none */
};

/**
 * trib_tree_make - a pure function of what is asked, the same on all that ask alike.
 *
 * A rack's hosts send to a service in it, else to the nearest; of equals to the one
 * with the fewest racks, then to the first of the list. Sums meet as low as they can:
 * below each switch they become one. A node above has as many children as the others
 * beside it, or one more; it is played by the service below the same switch that plays
 * the fewest parts, so that those without a rack come first.
 *
 * owner    trib_tree_free, unless it fails
 * errors   TRIB_ERR_INVALID: no service, one on no rack, a fan-in below 2;
 *          TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_tree_make(const struct trib_tree_ask *ask, struct trib_error *err,
                             struct trib_tree *out);

/** trib_tree_free - a zeroed tree is allowed. */
void trib_tree_free(struct trib_tree *tree);

#endif
