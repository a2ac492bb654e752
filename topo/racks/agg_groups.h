/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups of aggregators: a group sums the contributions of a rack's ranks, or the sums
 * of groups below it. Its aggregators share the chunks of the vector. One group is the
 * root.
 */
#ifndef TOPO_RACKS_AGG_GROUPS_H
#define TOPO_RACKS_AGG_GROUPS_H

#include "topo/racks/racks.h"

/* Places of aggregators and ranks, in a hierarchy. */
struct trib_places {
    int n;
    int *above; /* [n] the place above; -1: none */
    int aggregators;
    int *of_aggregator; /* [aggregators] its place; -1: above all places */
    int ranks;
    int *of_rank; /* [ranks] its place; -1: none */
};

/* Groups follow their parents; group 0 is the root. */
struct trib_agg_groups {
    int n;
    int *parent; /* [n]; unused for group 0 */
    /* [n + 1]: group u consists of aggregators[first[u]] up to first[u + 1], in
     * increasing order. */
    int *first;
    int *aggregators;
    int *of_rank; /* [ranks] destination group of each rank */
};

/**
 * trib_places_of_racks - find the places of aggregators and ranks by host name.
 *
 * A switch is a place; a host on no switch has none.
 * owner    caller; free with trib_places_free, unless it fails: TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_places_of_racks(const struct trib_racks *racks,
                                   const char *const *aggregators, int n_aggregators,
                                   const char *const *ranks, int n_ranks,
                                   struct trib_places *out);

/** trib_places_make - allocate unrelated places; errors as trib_places_of_racks. */
trib_status_t trib_places_make(int n, int aggregators, int ranks,
                               struct trib_places *out);

/** trib_places_free - free places; accepts zero-filled places. */
void trib_places_free(struct trib_places *places);

/**
 * trib_agg_groups_make - assign the sums to groups of aggregators: a pure function of
 * the places.
 *
 *   - The aggregators of a place form a group, for the ranks there and at places
 *     below without aggregators. Its parent is the group of the next place above that
 *     has one.
 *   - The root consists of the aggregators above all places. If there are none, it
 *     consists of all aggregators of the groups without a parent, which are then in
 *     two groups.
 *   - A group that would only forward the sum of one group below is omitted, and so
 *     is a group without ranks below: its aggregators take no part in the job.
 *
 * above    places must not form a cycle
 * owner    caller; free with trib_agg_groups_free, unless it fails
 * errors   TRIB_ERR_INVALID: no aggregator; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_agg_groups_make(const struct trib_places *places,
                                   struct trib_error *err, struct trib_agg_groups *out);

/** trib_agg_groups_free - free groups; accepts zero-filled groups. */
void trib_agg_groups_free(struct trib_agg_groups *groups);

#endif
