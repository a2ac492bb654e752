/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The algorithms: pure functions from a shape to a schedule, and the choice among them.
 */
#ifndef COLLECTIVES_COLLECTIVES_H
#define COLLECTIVES_COLLECTIVES_H

#include "schedule/schedule.h"
#include "topo/cost.h"

/* The inputs of the choice beside the shape. */
struct trib_choice {
    size_t bytes; /* of the vector that is moved: count * dtype size (one block
                          * for all-gather and reduce-scatter) */
    bool load_store; /* all peers are within load/store reach */
    bool near_load_store; /* those of a group are, of shape->groups */
    bool near; /* what is estimated is within a group, by load/store */
    bool sparse; /* the codec keeps few elements: merging grows them */
    /* A sparse codec gives both as parts of `bytes`; 0: not known, counted as 1. */
    double contribution; /* code words of one rank */
    double result; /* code words of the sum of all */
    bool lossy; /* code words are re-encoded at every hop that merges; not so
                          * those that add without decoding */
    bool oversubscribed; /* more ranks on this host than cores */
    bool one_host; /* all ranks are of one */
    double sharing; /* ranks whose bytes to other hosts go through the device of
                          * their host with a rank's own; 0: each has its own */
    size_t slot_bytes; /* payload of one slot */
    const struct trib_cost_model *network; /* as it was calibrated; NULL: constants */
    double delay_us; /* a long link's, one way, on top of a hop; 0: none is known */
    bool gathers; /* only algorithms that gather will do: trib_algo_gathers */
    bool pairs; /* (index, value) pairs are summed: `contribution` and `result` are of
                 * their words */
};

struct trib_algo {
    const char *name;
    const char *detail; /* one line: how, and what it is best for */
    /* Whoever sums a chunk gets the contributions of all ranks to it: no partial sum
     * travels. Not so in a tree of aggregators. */
    bool gathers;
    bool groups; /* is made of shape->groups: wants places, has leaders */
    bool aggregators; /* aggregators sum: shape->aggregators */
    bool merges; /* its all-reduce is of pairs, whose partial sums travel */
    bool encodes_once; /* no sum is encoded: who wants it decodes all contributions */
    uint32_t colls; /* bit 1 << trib_coll_t for each collective that it builds */
    /* Can it build this shape? (such as a power of two) */
    bool (*can)(const struct trib_shape *shape);
    /* Estimated microseconds; the smallest wins. Model and constants: topo/cost.h,
     * docs/algorithms.md. */
    double (*cost)(const struct trib_shape *shape, const struct trib_choice *choice);
    /* Fill an empty *out for rank shape->rank. */
    trib_status_t (*build)(const struct trib_shape *shape, struct trib_schedule *out);
};

/** trib_algos - all of them, NULL at the end. */
extern const struct trib_algo *const trib_algos[];

/** trib_algo_find - by name; NULL if there is none. */
const struct trib_algo *trib_algo_find(const char *name);

/** trib_algo_of_aggregators - the algorithm by which aggregators sum. */
const struct trib_algo *trib_algo_of_aggregators(void);

/** trib_algo_gathers - do all contributions to a chunk meet where it is summed? */
bool trib_algo_gathers(const struct trib_algo *algo, const struct trib_shape *shape);

/** trib_algo_sums_pairs - true if (index, value) pairs can be summed so: all
 * contributions meet, or partial sums are merged alike on all ranks. */
bool trib_algo_sums_pairs(const struct trib_algo *algo, const struct trib_shape *shape);

/**
 * trib_algo_choose - the algorithm with the smallest cost among those that can.
 *
 * why      receives one line: the choice and its runner-up with their estimates
 */
const struct trib_algo *trib_algo_choose(const struct trib_shape *shape,
                                         const struct trib_choice *choice, char *why,
                                         size_t bytes);

/** trib_algo_next - the second best, if it is estimated to cost at most `times` as much
 * as the best; or NULL. */
const struct trib_algo *trib_algo_next(const struct trib_shape *shape,
                                       const struct trib_choice *choice, double times);

#endif
