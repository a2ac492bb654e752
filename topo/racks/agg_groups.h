/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Aggregators in groups: a group sums for the ranks of a rack, or what groups below it
 * have summed, and its aggregators share the chunks of the vector. One group is the
 * root.
 */
#ifndef TOPO_RACKS_AGG_GROUPS_H
#define TOPO_RACKS_AGG_GROUPS_H

#include "topo/racks/racks.h"

/* Places of aggregators and ranks, which lie below each other. */
struct trib_places {
    int n;
    int *above;      /* [n] a place; -1: none */
    int aggregators;
    int *of_aggregator; /* [aggregators] its place; -1: above all places */
    int ranks;
    int *of_rank;    /* [ranks] its place; -1: none */
};

/* Groups behind their parents; group 0 is the root. */
struct trib_agg_groups {
    int n;
    int *parent;  /* [n]; not read for group 0 */
    int *first;   /* [n + 1] group u has aggregators[first[u]] up to first[u + 1], which
                   * rise */
    int *aggregators;
    int *of_rank; /* [ranks] the group to which it sends */
};

/**
 * trib_places_of_racks - find the places of aggregators and ranks by the names of
 * hosts.
 *
 * A switch is a place; a host that is on no switch has none.
 * owner    trib_places_free, unless it fails: TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_places_of_racks(const struct trib_racks *racks,
                                   const char *const *aggregators, int n_aggregators,
                                   const char *const *ranks, int n_ranks,
                                   struct trib_places *out);

/** trib_places_make - make places without relations. Errors as above. */
trib_status_t trib_places_make(int n, int aggregators, int ranks,
                               struct trib_places *out);

/** trib_places_free - zeroed places are allowed. */
void trib_places_free(struct trib_places *places);

/**
 * trib_agg_groups_make - decide which group of aggregators sums what: a pure function
 * of the places.
 *
 *   - The aggregators of a place are a group, for the ranks there and for places below
 *     that have no aggregator of their own; its parent is the group of the next place
 *     above that has one.
 *   - The root is the aggregators above all places. Where there is none, it is all
 *     aggregators of the groups that have no parent: these are in two groups then.
 *   - A group for which there would be nothing to sum but what one group below sends is
 *     left out, and so is one below which there is no rank: its aggregators have no
 *     part in the job.
 *
 * above    places make no circle
 * owner    trib_agg_groups_free, unless it fails
 * errors   TRIB_ERR_INVALID: no aggregator; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_agg_groups_make(const struct trib_places *places,
                                   struct trib_error *err, struct trib_agg_groups *out);

/** trib_agg_groups_free - zeroed groups are allowed. */
void trib_agg_groups_free(struct trib_agg_groups *groups);

#endif
