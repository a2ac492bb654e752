/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The algorithms: pure functions from a shape to a schedule, and the choice among them.
 */
#ifndef COLLECTIVES_COLLECTIVES_H
#define COLLECTIVES_COLLECTIVES_H

#include "collectives/schedule/schedule.h"
#include "topo/cost.h"

/* The inputs of the choice besides the shape. */
struct trib_choice {
    size_t bytes; /* size of the vector: count * dtype size (one block for all-gather
                   * and reduce-scatter) */
    bool load_store; /* all peers are within load/store reach */
    bool near_load_store; /* all peers within each group of shape->groups are */
    bool near; /* the estimate is for a group with load/store reach */
    bool sparse; /* the codec keeps few elements, so merged messages grow */
    /* Of a sparse codec, as fractions of `bytes`; 0: unknown, counted as 1. */
    double contribution; /* encoded data of one rank */
    double result; /* encoded data of the total sum */
    bool lossy; /* merging hops encode again, unless chunks add without decoding */
    bool oversubscribed; /* more ranks on this host than cores */
    bool one_host; /* all ranks are on one host */
    double sharing; /* ranks that share their host's device for traffic to other hosts;
                     * 0: each has its own device */
    size_t slot_bytes; /* payload of one slot */
    const struct trib_cost_model *network; /* calibrated model; NULL: constants */
    double delay_us; /* extra one-way delay of a long link; 0: unknown */
    bool gathers; /* only algorithms that gather are allowed: trib_algo_gathers */
    bool pairs; /* (index, value) pairs are summed; `contribution` and `result` refer to
                 * encoded pairs */
};

struct trib_algo {
    const char *name;
    const char *detail; /* one line: the method, and its best use */
    /* The rank that sums a chunk receives the contributions of all ranks: no partial
     * sums are sent. Not in a tree of aggregators. */
    bool gathers;
    bool groups; /* uses shape->groups: wants places, has leaders */
    bool aggregators; /* aggregators sum: shape->aggregators */
    bool merges; /* its all-reduce sums pairs and sends partial sums */
    bool encodes_once; /* no sum is encoded: every receiver decodes all contributions */
    /* Return the number of ranks that send to one rank on a lane at once, at most;
     * NULL: few. */
    uint32_t (*senders)(const struct trib_shape *shape, int lane);
    uint32_t colls; /* bit 1 << trib_coll_t for each supported collective */
    /* Return true if this shape can be built (for example, a power of two). */
    bool (*can)(const struct trib_shape *shape);
    /* Return the estimated microseconds; the smallest wins. Model and constants:
     * topo/cost.h, docs/algorithms.md. */
    double (*cost)(const struct trib_shape *shape, const struct trib_choice *choice);
    /* Fill an empty *out for rank shape->rank. */
    trib_status_t (*build)(const struct trib_shape *shape, struct trib_schedule *out);
};

/** trib_algos - all algorithms, terminated by NULL. */
extern const struct trib_algo *const trib_algos[];

/** trib_algo_find - return the algorithm with this name, or NULL. */
const struct trib_algo *trib_algo_find(const char *name);

/** trib_algo_of_aggregators - return the algorithm that uses aggregators. */
const struct trib_algo *trib_algo_of_aggregators(void);

/** trib_algo_gathers - return true if the rank that sums a chunk receives all
 * contributions. */
bool trib_algo_gathers(const struct trib_algo *algo, const struct trib_shape *shape);

/** trib_algo_senders - return the number of ranks that send to one rank on a lane at
 * once, at most; 1: few. */
uint32_t trib_algo_senders(const struct trib_algo *algo, const struct trib_shape *shape,
                           int lane);

/** trib_algo_sums_pairs - return true if the algorithm can sum (index, value) pairs: it
 * gathers all contributions, or merges partial sums identically on all ranks. */
bool trib_algo_sums_pairs(const struct trib_algo *algo, const struct trib_shape *shape);

/**
 * trib_algo_choose - return the possible algorithm with the smallest cost, or NULL.
 *
 * why      receives one line: the choice and its runner-up with their estimates
 */
const struct trib_algo *trib_algo_choose(const struct trib_shape *shape,
                                         const struct trib_choice *choice, char *why,
                                         size_t bytes);

/** trib_algo_next - return the second best algorithm if its estimated cost is at most
 * `times` the best's; or NULL. */
const struct trib_algo *trib_algo_next(const struct trib_shape *shape,
                                       const struct trib_choice *choice, double times);

#endif
