/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graphs of push-sum: the ranks that a rank sends to and receives from in each step.
 */
#ifndef TRAIN_TRAINER_GRAPH_H
#define TRAIN_TRAINER_GRAPH_H

#include <stdint.h>

enum trib_train_graph {
    TRIB_TRAIN_GRAPH_EXPONENTIAL, /* hops 1, 2, 4, … in turn */
    TRIB_TRAIN_GRAPH_RING, /* the next ranks */
    TRIB_TRAIN_GRAPH_BIPARTITE, /* even ranks exchange with odd ranks, over odd hops */
    TRIB_TRAIN_GRAPH_RANDOM, /* random hops, the same on all ranks */
    TRIB_TRAIN_GRAPHS,
};

enum { TRIB_TRAIN_GRAPH_PEERS = 16 };

/* Names of the graphs in a strategy's text, NULL-terminated. */
extern const char *const trib_train_graph_words[TRIB_TRAIN_GRAPHS + 1];

/**
 * trib_train_graph_at - return the peers of a rank in a step.
 *
 * peers    wanted, 1 to TRIB_TRAIN_GRAPH_PEERS; fewer if there are too few ranks
 * to, from receive the ranks in ascending order, without duplicates and without `rank`
 * returns  length of each list
 */
int trib_train_graph_at(enum trib_train_graph graph, int rank, int ranks, int peers,
                        uint64_t step, uint64_t seed, int to[TRIB_TRAIN_GRAPH_PEERS],
                        int from[TRIB_TRAIN_GRAPH_PEERS]);

#endif
