/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/trainer/graph.h"

#include <stdbool.h>

#include "base/rng.h"

const char *const trib_train_graph_words[TRIB_TRAIN_GRAPHS + 1] = {
    [TRIB_TRAIN_GRAPH_EXPONENTIAL] = "exponential",
    [TRIB_TRAIN_GRAPH_RING] = "ring",
    [TRIB_TRAIN_GRAPH_BIPARTITE] = "bipartite",
    [TRIB_TRAIN_GRAPH_RANDOM] = "random",
};

/* Hops of the exponential graph with q peers: j (q + 1)^i below the number of ranks. */
static int exponential_hop(int ranks, int peers, uint64_t turn)
{
    int64_t power = 1;
    uint64_t n = 0;

    for (power = 1; power < ranks; power *= peers + 1)
        for (int j = 1; j <= peers; j++)
            n += j * power < ranks;
    turn %= n;
    for (power = 1; power < ranks; power *= peers + 1)
        for (int j = 1; j <= peers; j++)
            if (j * power < ranks && turn-- == 0)
                return (int)(j * power);
    return 1;
}

/* Odd hops 1, 3, 5, 9, … = 1 + 2^i, below the number of ranks. */
static int odd_hop(int ranks, uint64_t turn)
{
    uint64_t n = 1;

    while ((1 << n) + 1 < ranks)
        n++;
    turn %= n;
    return turn == 0 ? 1 : (1 << turn) + 1;
}

/* Return the same number on all ranks. */
static uint32_t draw(uint64_t seed, uint64_t turn)
{
    const struct trib_rng rng = {.seed = seed};

    return trib_rng_draw4(rng, turn).word[0];
}

static int hop_of(enum trib_train_graph graph, int ranks, int peers, uint64_t step,
                  int k, uint64_t seed)
{
    const uint64_t turn = step * (uint64_t)peers + (uint64_t)k;

    switch (graph) {
    case TRIB_TRAIN_GRAPH_EXPONENTIAL:
        return exponential_hop(ranks, peers, turn);
    case TRIB_TRAIN_GRAPH_RING:
        return k % (ranks - 1) + 1;
    case TRIB_TRAIN_GRAPH_BIPARTITE:
        return odd_hop(ranks, turn);
    default:
        return (int)(draw(seed, turn) % (uint32_t)(ranks - 1)) + 1;
    }
}

static void insert(int *list, int n, int rank)
{
    while (n > 0 && list[n - 1] > rank) {
        list[n] = list[n - 1];
        n--;
    }
    list[n] = rank;
}

static bool holds(const int *list, int n, int rank)
{
    for (int i = 0; i < n; i++)
        if (list[i] == rank)
            return true;
    return false;
}

int trib_train_graph_at(enum trib_train_graph graph, int rank, int ranks, int peers,
                        uint64_t step, uint64_t seed, int to[TRIB_TRAIN_GRAPH_PEERS],
                        int from[TRIB_TRAIN_GRAPH_PEERS])
{
    int n = 0;

    for (int k = 0; k < peers && ranks > 1; k++) {
        const int hop = hop_of(graph, ranks, peers, step, k, seed);
        const int forward = (rank + hop) % ranks, back = (rank + ranks - hop) % ranks;

        if (holds(to, n, forward))
            continue;
        insert(to, n, forward);
        insert(from, n, back);
        n++;
    }
    return n;
}
