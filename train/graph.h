/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graphs of push-sum: to whom a rank sends in a step, and from whom it gets something.
 */
#ifndef TRIB_TRAIN_GRAPH_H
#define TRIB_TRAIN_GRAPH_H

#include <stdint.h>

enum trib_train_graph {
    TRIB_TRAIN_GRAPH_EXPONENTIAL, /* hops 1, 2, 4, … by turns */
    TRIB_TRAIN_GRAPH_RING, /* the next ranks */
    TRIB_TRAIN_GRAPH_BIPARTITE, /* even ranks and odd ones exchange, over odd hops */
    TRIB_TRAIN_GRAPH_RANDOM, /* hops that all ranks draw alike */
    TRIB_TRAIN_GRAPHS,
};

enum { TRIB_TRAIN_GRAPH_PEERS = 16 };

/* The words of a strategy's text for them, with NULL behind the last. */
extern const char *const trib_train_graph_words[TRIB_TRAIN_GRAPHS + 1];

/**
 * trib_train_graph_at - the peers of a rank in a step.
 *
 * peers    wanted, 1 to TRIB_TRAIN_GRAPH_PEERS; there are fewer where ranks are few
 * to, from receive the ranks, each once and none the rank itself, in rising order
 * returns  how many are in each list
 */
int trib_train_graph_at(enum trib_train_graph graph, int rank, int ranks, int peers,
                        uint64_t step, uint64_t seed, int to[TRIB_TRAIN_GRAPH_PEERS],
                        int from[TRIB_TRAIN_GRAPH_PEERS]);

#endif
