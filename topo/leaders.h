/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Leaders: the ranks of each group that sum a shard for it and exchange it with the
 * same leader of the other groups.
 */
#ifndef TOPO_LEADERS_H
#define TOPO_LEADERS_H

#include <stddef.h>

#include "topo/cost.h"
#include "topo/groups.h"

/* The facts that decide how many leaders a group has. */
struct trib_leaders_ask {
    int groups;
    int smallest; /* ranks of the smallest group: there are no more leaders */
    int largest;
    int nics; /* network devices of a group, the fewest; below 1: one */
    int cores; /* fewest cores of a group; 0: one for each rank */
    size_t bytes; /* length of the vector that is summed */
    const struct trib_cost_model *inside; /* NULL: loads and stores */
    const struct trib_cost_model
        *between; /* NULL: a network, of cores that ranks share where `cores` are fewer;
                   * its rate is of one device */
};

/* Leader l of group g is rank[g * n + l]. */
struct trib_leaders {
    int n; /* number of leaders of each group */
    int *rank;
};

/** trib_leaders_ask_of - fill in what the groups say; cores and bytes are left to the
 * caller. */
void trib_leaders_ask_of(const struct trib_groups *groups,
                         const struct trib_rank_place *places,
                         struct trib_leaders_ask *out);

/**
 * trib_leaders_us - the cost of an all-reduce with so many leaders, in microseconds.
 *
 *   inside    each leader sums its shard of all ranks of the group, and gives it back
 *   between   it exchanges the shard with the other groups; leaders that share a device
 *             share its rate, so that more of them than devices add no bandwidth
 *
 * Leaders beyond the cores take turns on these.
 */
double trib_leaders_us(const struct trib_leaders_ask *ask, int leaders);

/**
 * trib_leaders_choose - the number of leaders that each group gets.
 *
 * As many as there are devices at least, then multiples of that, so that devices carry
 * the same; of these the fewest with which the cost is within 5 % of the least. Never
 * more than the smallest group has ranks.
 */
int trib_leaders_choose(const struct trib_leaders_ask *ask);

/**
 * trib_leaders_appoint - choose the leaders: leader l is near the l-th device of its
 * group, and leaders are spread over packages, NUMA nodes and caches; otherwise the
 * lowest ranks.
 *
 * n        leaders of each group: 1 to groups->smallest
 * owner    trib_leaders_free, unless it fails
 * errors   TRIB_ERR_INVALID: n does not fit the smallest group; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_leaders_appoint(const struct trib_groups *groups,
                                   const struct trib_rank_place *places, int n,
                                   struct trib_error *err, struct trib_leaders *out);

/** trib_leaders_free - zeroed leaders are allowed. */
void trib_leaders_free(struct trib_leaders *leaders);

#endif
