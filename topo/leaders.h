/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Leaders: the ranks of each group that sum a shard for the group and exchange it with
 * the same leader of the other groups.
 */
#ifndef TOPO_LEADERS_H
#define TOPO_LEADERS_H

#include <stddef.h>

#include "topo/cost.h"
#include "topo/groups.h"

/* Input to the choice of the number of leaders. */
struct trib_leaders_ask {
    int groups;
    int smallest; /* ranks of the smallest group: the most leaders */
    int largest;
    int nics; /* fewest network devices of a group; below 1: one */
    int cores; /* fewest cores of a group; 0: one for each rank */
    size_t bytes; /* length of the vector to sum */
    const struct trib_cost_model *inside; /* NULL: loads and stores */
    /* NULL: a network, with shared cores if `cores` is less than `largest`; its rate is
     * that of one device. */
    const struct trib_cost_model *between;
};

/* Leader l of group g is rank[g * n + l]. */
struct trib_leaders {
    int n; /* number of leaders of each group */
    int *rank;
};

/** trib_leaders_ask_of - fill in the fields known from the groups; the caller sets
 * cores and bytes. */
void trib_leaders_ask_of(const struct trib_groups *groups,
                         const struct trib_rank_place *places,
                         struct trib_leaders_ask *out);

/**
 * trib_leaders_us - estimate the time of an all-reduce with this many leaders, in us.
 *
 *   inside    each leader sums its shard from all ranks of the group, and returns it
 *   between   it exchanges the shard with the other groups; leaders on one device share
 *             its rate, so more leaders than devices add no bandwidth
 *
 * Leaders that outnumber the cores take turns.
 */
double trib_leaders_us(const struct trib_leaders_ask *ask, int leaders);

/**
 * trib_leaders_choose - return the number of leaders per group.
 *
 * It is at least the number of devices, and a multiple of it, so that devices carry
 * equal loads. The smallest number with a cost within 5 % of the minimum is chosen,
 * limited to the ranks of the smallest group.
 */
int trib_leaders_choose(const struct trib_leaders_ask *ask);

/**
 * trib_leaders_appoint - choose the leaders.
 *
 * Leader l is near the l-th device of its group, and leaders are spread over packages,
 * NUMA nodes and caches; ties go to the lowest rank.
 * n        leaders of each group: 1 to groups->smallest
 * owner    caller; free with trib_leaders_free, unless it fails
 * errors   TRIB_ERR_INVALID: n exceeds the smallest group; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_leaders_appoint(const struct trib_groups *groups,
                                   const struct trib_rank_place *places, int n,
                                   struct trib_error *err, struct trib_leaders *out);

/** trib_leaders_free - free leaders; accepts zero-filled leaders. */
void trib_leaders_free(struct trib_leaders *leaders);

#endif
